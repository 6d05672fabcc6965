"""The transfer study's figures: their numbers are the runs', gaps are reported."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

from plumbline.results.figures import figure_style
from plumbline.specs import study_parts
from plumbline.studies.transfer.task_differences import deltas, list_tasks
from tests.studies import made_targets
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, curve
from tests.studies.transfer.synthetic_runs import tasks_of as twelve

FIGURES = study_parts.targets("transfer", "figures")


def draw(world, name):
    frames = world.load(*world.study.definition["targets"][name]["runs"])
    return study_parts.function("transfer", "figures", name)(frames, world.study, PUBLISHED), frames


def words(picture) -> str:
    texts = [text.get_text() for axes in picture.figure.axes for text in axes.texts]
    titles = [axes.get_title(loc) for axes in picture.figure.axes for loc in ("center", "left")]
    return "\n".join([*texts, *titles])


def draw_published(name):
    made = made_targets.make_target("transfer", name)
    return made.product, made.frames


def test_fig1_ends_in_crosses_at_the_last_finite_steps():
    picture, frames = draw_published("fig1")
    ends = picture.frame[picture.frame["last_before_divergence"]]
    assert dict(zip(ends["run"].str.slice(-3), ends["step"], strict=True)) == {"s42": 3400, "s43": 2800, "s44": 2700}
    key = "transfer/large/baseline/s42"
    train = frames.metrics(key).query("split == 'train'").set_index("step")["grad_norm"]
    mine = picture.frame[picture.frame["run"] == key]
    assert mine["step"].max() <= 3400 * 1.06
    assert mine["grad_norm"].to_numpy() == pytest.approx(train.loc[mine["step"]].to_numpy())


def test_fig2_has_all_points_of_six_curves():
    """And of their other seeds; the band is the baseline's three."""
    picture, frames = draw_published("fig2")
    assert picture.frame["label"].nunique() == 6 and picture.frame["run"].nunique() == 12
    assert "baseline (3 seeds, prediction" in words(picture)
    seeds = [frames.metrics(f"transfer/base/baseline/s{seed}").query("split == 'validation'") for seed in (42, 43, 44)]
    last = np.array([curve["loss"].iloc[-1] for curve in seeds])
    half = stats.t.isf(0.025, 2) * last.std(ddof=1) * math.sqrt(1 + 1 / 3)
    (band,) = picture.figure.axes[0].collections
    at_the_end = [y for x, y in band.get_paths()[0].vertices if x == seeds[0]["step"].iloc[-1]]
    assert [min(at_the_end), max(at_the_end)] == pytest.approx([last.mean() - half, last.mean() + half])
    for key, mine in picture.frame.groupby("run"):
        loss = frames.metrics(key).query("split == 'validation'")["loss"].to_numpy()
        assert np.array_equal(mine["validation_loss"].to_numpy(), loss)
    assert "SSMax 2.563" in words(picture)


def test_fig3_is_the_table_behind_it(published):
    picture, frames = draw_published("fig3")
    values = deltas(frames, published.study, list_tasks(frames, published.study, PUBLISHED), "baseline")
    wide = picture.frame.pivot(index="method", columns="task", values="score_minus_baseline")
    assert np.allclose(wide.loc[values.index, values.columns].to_numpy(), values.to_numpy())
    assert picture.frame["method"].iloc[0] == "softpick" and "−41.7" in words(picture)
    low, high = picture.figure.axes[0].images[0].get_clim()
    assert low == -high


def test_fig3_marks_what_lies_beyond_the_baselines_seeds(tmp_path):
    """One cell far out, on a task on which the seeds differ; the colours end near all others."""
    world = World(tmp_path, "demo")
    for seed, value in ((42, 0.30), (43, 0.301), (44, 0.302)):
        world.completed("base", "baseline", seed, twelve(value), 5.0)
    far_out = twelve(0.301).copy()
    far_out["piqa"] = 0.9
    world.completed("base", "softpick", 42, far_out, 4.9)
    world.completed("base", "qknorm", 42, twelve(0.306), 4.9)
    picture = draw(world, "fig3")[0]
    cells = picture.frame.set_index(["method", "task"])
    t = (0.306 - 0.301) / (0.001 * math.sqrt(1 + 1 / 3))
    assert cells.loc[("qknorm", "boolq"), "p_run_vs_seeds"] == pytest.approx(2 * stats.t.sf(t, 2), rel=1e-6)
    assert cells.loc[("softpick", "piqa"), "mark"] == "**" and cells.loc[("softpick", "boolq"), "mark"] == ""
    assert (cells.loc["baseline", "mark"] == "").all()
    assert "of 24 cells" in picture.figure.axes[0].get_xlabel()
    assert "colour ends at ±" in picture.figure.axes[1].get_ylabel()


def test_protocol_power_says_what_its_axes_are():
    left_axes, right_axes = draw_published("protocol_power")[0].figure.axes
    for axes in (left_axes, right_axes):
        assert axes.get_xlabel() and axes.get_ylabel() and axes.get_title("left")
    assert "none of 19 methods works" in left_axes.get_title("left")


def test_protocol_thresholds_call_what_the_paper_calls():
    picture = draw_published("protocol_thresholds")[0]
    frame = picture.frame.set_index("method")
    called = {
        name.removeprefix("called_"): set(frame.index[frame[name]]) for name in frame if name.startswith("called")
    }
    failures = {"attnres", "ssmax", "sigmoid_attn"}
    assert called["normal_3"] == {"softpick", "hybrid_norm", "layerscale", "hyper"} | failures, "the printed survivors"
    assert called["prediction_3"] == failures and called["prediction_6"] == failures | {"hyper"}
    assert called["prediction_10"] == failures | {"hyper", "softpick", "layerscale"}
    for n in (3, 6, 10):
        expected = stats.t.isf(0.05 / 19 / 2, n - 1) * math.sqrt(1 + 1 / n)
        assert frame[f"threshold_prediction_{n}"].tolist() == pytest.approx([expected] * 19)
        assert f"{n} seeds: |z| from {expected:.1f} on" in " ".join(
            text.get_text() for text in picture.figure.legends[0].get_texts()
        )
    assert frame["threshold_normal_3"].iloc[0] == pytest.approx(stats.norm.isf(0.05 / 38))


def test_fig1_speaks_of_crosses_where_there_are_some(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("large", "hybrid_norm", 43, None, 5.0, curve(44, 5.0, every=1))
    assert "cross" not in words(draw(world, "fig1")[0]) and "cross" in words(draw_published("fig1")[0])


def test_ticks_have_no_offset_and_differ():
    with mpl.rc_context(figure_style.RC):
        figure, axes = figure_style.make_canvas(4, 3)
        axes.plot([0.999000001, 0.999000002], [0, 1])
        figure_style.widen_narrow_limits(axes, "x")
        figure.draw_without_rendering()
        labels = [label.get_text() for label in axes.get_xticklabels()]
    assert axes.xaxis.get_offset_text().get_text() == "" and len(set(labels)) == len(labels)
    assert max(map(len, labels)) <= 7


def test_what_is_not_there_is_told(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("base", "baseline", 42, twelve(0.3), 5.0, curve(44, 5.0, every=11))
    world.completed("base", "softpick", 42, twelve(0.31), 4.9, curve(44, 4.9, every=11))
    world.diverged("base", "ssmax", 42, 3, [(1, 2.0), (2, 9.0), (3, math.nan)])
    world.completed("large", "hybrid_norm", 43, None, 5.0, curve(44, 5.0, every=1))
    fig1, fig2, fig3 = (draw(world, name)[0] for name in ("fig1", "fig2", "fig3"))
    assert "Baseline, seed 42 (missing)" in words(fig1) and fig1.frame["step"].max() == 44
    assert "SSMax (diverged before a held-out loss)" in words(fig2) and "AttnRes" in words(fig2)
    assert words(fig3).count("missing") == 17 and words(fig3).count("diverged") == 1
    assert (fig3.frame["missing_reason"] == "no value").sum() == 18 * 12


def test_an_empty_world_can_be_drawn(tmp_path):
    world = World(tmp_path, "smoke")
    for name in FIGURES:
        picture = draw(world, name)[0]
        picture.figure.draw_without_rendering()
        target = world.study.definition["targets"][name]
        is_of_print_alone = not target["runs"] and bool(target["published"])  # as `protocol_thresholds`, at any preset
        assert ("preset smoke" in words(picture)) != is_of_print_alone, name


def test_thinning_keeps_spikes_and_the_end():
    steps, values = np.arange(40_000), np.zeros(40_000)
    values[12_345] = 7.0
    x, y = figure_style.thin_curve(steps, values, most=100)
    assert len(x) <= 101 and y.max() == 7.0 and x[-1] == 39_999 and (np.diff(x) > 0).all()


def test_direct_labels_do_not_touch_and_stay_inside():
    figure, axes = figure_style.make_canvas(4, 3)
    axes.set_ylim(0, 1)
    figure_style.label_curves(axes, [(y, str(y), "black") for y in (0.0, 0.001, 0.002, 0.5, 0.99, 1.0)])
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert min(np.diff(heights)) >= 0.052 - 1e-9 and heights[0] >= 0 and heights[-1] <= 1
    assert any(abs(height - 0.5) < 1e-9 for height in heights)  # a label with room does not move
    assert figure.axes


def test_method_differences_are_means_of_seeds_with_intervals(tmp_path):
    world = World(tmp_path, "demo")
    baseline = [6.55, 6.58, 6.54, 6.57, 6.56, 6.53]
    for seed, loss in enumerate(baseline, 42):
        world.completed("base", "baseline", seed, None, loss)
    for seed, loss in ((42, 6.20), (43, 6.24), (44, 6.22)):
        world.completed("base", "softpick", seed, None, loss)
    world.completed("base", "qknorm", 42, None, 6.55)
    world.completed("base", "hyper", 42, None, 6.56)
    world.diverged("base", "ssmax", 42, 7, [(5, 1.0), (7, math.nan)])
    for seed, loss in ((42, 6.1), (43, 6.2)):
        world.completed("large", "hybrid_norm", seed, None, loss)
    world.completed("large", "baseline", 42, None, 6.0)
    picture, _ = draw(world, "method_differences")
    row = picture.frame.set_index("method").loc["softpick"]
    assert row["lower_loss_base"] == pytest.approx(6.555 - 6.22)
    assert row["n_seeds_base"] == 3 and row["resolved_base"] == "yes"
    # The spread of seeds about their own arm's mean: 5 and 2 degrees of freedom.
    sigma = math.sqrt((5 * np.var(baseline, ddof=1) + 2 * np.var([6.20, 6.24, 6.22], ddof=1)) / 7)
    assert row["half_interval_95_base"] == pytest.approx(stats.t.isf(0.025, 7) * sigma * math.sqrt(1 / 3 + 1 / 6))
    assert math.isnan(row["lower_loss_large"]) and row["resolved_large"] == "not known"
    assert picture.frame.set_index("method").loc["qknorm", "resolved_base"] == "no"
    assert row["z_published"] == 4.47 and row["z_published_3b"] == pytest.approx(0.0095 / 0.00208)
    assert list(picture.frame["method"]) == ["hyper", "qknorm", "softpick"]  # the best one is drawn on top
    assert list(picture.frame["diverges_3b_published"]) == ["yes", "no", "no"]  # Table 6: a seed of HyperConnections
    assert "3B: diverges" in [text.get_text() for text in picture.figure.axes[1].get_legend().get_texts()]
    assert "SSMax (diverged)" in words(picture) and "GeGLU (missing)" in words(picture)
