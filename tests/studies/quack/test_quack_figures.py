"""The figures: their numbers are the runs', the best tau is drawn, divergences are marked."""

from __future__ import annotations

import pandas as pd
import pytest

from plumbline.results.figures.figure_style import FigureWithData
from plumbline.specs import study_parts
from plumbline.studies.quack.figures._panels import find_equal_curves
from plumbline.studies.quack.run_grid import RunGrid
from tests.studies import made_targets
from tests.studies.quack import synthetic_runs
from tests.studies.quack.synthetic_runs import ETAS, LOSSES, PUBLISHED, TAUS, Written, key

FIGURES = ("fig1", "fig2", "fig3")


def draw(written: Written, name: str) -> FigureWithData:
    return study_parts.function("quack", "figures", name)(written.load(), written.study, PUBLISHED)


@pytest.fixture(scope="module")
def pictures() -> dict[str, FigureWithData]:
    return {name: made_targets.draw("quack", name) for name in FIGURES}


def words(picture: FigureWithData) -> str:
    texts = [text for axes in picture.figure.axes for text in (*axes.texts, *axes.get_xticklabels())]
    titles = [axes.get_title(loc) for axes in picture.figure.axes for loc in ("center", "left")]
    return "\n".join([*(text.get_text() for text in texts), *titles, picture.figure.get_suptitle()])


@pytest.mark.parametrize("name", FIGURES)
def test_scales_are_named(pictures: dict[str, FigureWithData], name: str) -> None:
    assert "preset paper · 1.04B MHA and 1.00B MLA" in words(pictures[name])


def test_fig1_draws_the_best_tau_of_each_method_at_each_rate(pictures: dict[str, FigureWithData]) -> None:
    frame = pictures["fig1"].frame
    drawn_methods = frame.groupby(["attention", "base_lr"])["method"].agg(set)
    for scale, methods in LOSSES.items():
        for eta in ETAS:
            assert drawn_methods[scale.upper(), eta] == set(methods)
    mine = frame[(frame["method"] == "quack") & (frame["attention"] == "MLA") & (frame["base_lr"] == 3e-3)]
    assert mine["tau"].eq(0.1).all() and mine["run"].eq(key("mla", "quack", 3e-3, 0.1)).all()
    assert mine["validation_loss"].iloc[-1] == pytest.approx(2.95) and mine["step"].iloc[-1] == 5000
    assert "tau: QuacK 0.1, Ablation 0.1" in words(pictures["fig1"])


def test_curves_that_coincide_are_named(right: Written, pictures: dict[str, FigureWithData], tmp_path) -> None:
    """A threshold that is never reached leaves the default's curve."""
    label = "the same curve: Default, QK-clip 100"

    def repeat_default(facts: synthetic_runs.World) -> synthetic_runs.World:
        facts[key("mla", "qk_clip_100", ETAS[0])] = facts[key("mla", "default", ETAS[0])]
        return facts

    figure_after = draw(right.changed(repeat_default, tmp_path), "fig1")
    before, after = (words(picture).replace("\n", " ").count(label) for picture in (pictures["fig1"], figure_after))
    assert after == before + 1
    low, high = pd.Series([1.0, 2.0]), pd.Series([1.0, 2.0 + 1e-12])
    grid = RunGrid(right.load(), right.study)
    assert find_equal_curves(grid, {"default": low, "quack": high}) == []
    assert find_equal_curves(grid, {"default": low, "quack": high, "ablation": low}) == [
        "the same curve: Default, Ablation"
    ]


def crosses(picture: FigureWithData) -> int:
    return sum(line.get_marker() == "x" for axes in picture.figure.axes for line in axes.get_lines())


def test_what_diverged_is_marked(pictures: dict[str, FigureWithData]) -> None:
    assert crosses(pictures["fig1"]) == 3  # of the best taus: the default twice, and one threshold
    assert crosses(pictures["fig2"]) == 3 + 4  # and every tau of 10 at the highest rate
    frame = pictures["fig2"].frame
    diverged = frame[frame["outcome"] == "diverged"]
    assert len(diverged) == 7 and diverged["validation_loss"].isna().all()


def test_fig2_has_every_run_of_the_grid(pictures: dict[str, FigureWithData]) -> None:
    frame = pictures["fig2"].frame
    assert len(frame) == 63 and frame["run"].is_unique
    assert frame.groupby(["attention", "method", "base_lr"])["is_best_tau"].sum().eq(1).all()
    mine = frame.set_index("run")
    assert mine.loc[key("mha", "ablation", 3e-4, 1), ["is_best_tau", "validation_loss"]].tolist() == [True, 3.37]
    assert not mine.loc[key("mla", "default", 3e-3), "stable"] and mine.loc[key("mla", "quack", 3e-3, 1), "stable"]
    assert mine["plotted_at_lr"].between(mine["base_lr"] / 1.5, mine["base_lr"] * 1.5).all()


def test_scales_and_keys_are_those_of_what_is_drawn(tmp_path, pictures: dict[str, FigureWithData]) -> None:
    axes = pictures["fig3"].figure.axes
    assert [axis.get_ylabel() for axis in axes if axis.get_yscale() == "symlog" and axis.get_ylabel()] == [
        "largest logit (symlog)"
    ] * 2
    (key_of_fig1,) = pictures["fig1"].figure.legends
    assert "diverged" in [text.get_text() for text in key_of_fig1.get_texts()] and crosses(pictures["fig1"])


def test_fig3_reads_the_watched_head_alone(right: Written, pictures: dict[str, FigureWithData]) -> None:
    frame = pictures["fig3"].frame
    assert set(frame["probe"]) == {"logit_max", "logit_change"}
    mine = frame[(frame["run"] == key("mha", "qk_norm", 3e-2)) & (frame["probe"] == "logit_max")]
    assert mine["value"].iloc[-1] == pytest.approx(39.5)  # of all heads it is 40
    assert frame[frame["probe"] == "logit_change"]["value"].eq(0.1).all()
    best = frame[(frame["method"] == "ablation") & (frame["base_lr"] == 3e-4)]["tau"]
    assert best.eq(1).all()


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_not_there_is_named(right: Written, tmp_path, name: str) -> None:
    def fewer(facts: synthetic_runs.World) -> synthetic_runs.World:
        kept_runs = {name: own for name, own in facts.items() if "mla/qk_clip_30" not in name}
        for tau in TAUS:
            kept_runs[key("mha", "quack", 3e-2, tau)].outcome = "diverged"
        return kept_runs

    picture = draw(right.changed(fewer, tmp_path), name)
    assert ("missing: 3 runs" if name == "fig2" else "QK-clip 30: missing") in words(picture)
    points = picture.frame.dropna(subset=["validation_loss" if "validation_loss" in picture.frame else "value"])
    assert "qk_clip_30" not in set(points["method"]) and "qk_clip_100" in set(points["method"])


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_at_all_is_a_picture_too(tmp_path, name: str) -> None:
    picture = draw(Written(tmp_path, {}, "demo"), name)
    assert "missing" in words(picture) and "preset demo" in words(picture)
