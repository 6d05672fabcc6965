"""The figures: their numbers are the runs' and the measurement's, printed ones stand beside, gaps are told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.results.figures.figure_style import FigureWithData
from plumbline.specs import study_parts
from tests.studies.query_free.synthetic_runs import (
    PUBLISHED,
    STUDY,
    Transfer,
    as_the_document_says,
    load_frames,
    study_at,
    write_runs,
    write_transfer,
)


def draw(root: Path, name: str, preset: str = "paper") -> FigureWithData:
    study = study_at(preset)
    frames = load_frames(root, *study.definition["targets"][name]["runs"], preset=preset)
    return study_parts.function(STUDY, "figures", name)(frames, study, PUBLISHED)


def words(picture: FigureWithData) -> str:
    texts = [text.get_text() for axes in picture.figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    legends = [text.get_text() for legend in picture.figure.legends for text in legend.get_texts()]
    return "\n".join([*texts, *titles, *legends])


def test_fig1_has_every_evaluation(right: Path) -> None:
    picture = draw(right, "fig1")
    ours = picture.frame[picture.frame["source"] == "reproduced"].set_index(["method", "step"])
    assert len(ours) == 5 * 60 and ours.index.get_level_values("method").nunique() == 5
    end = ours.xs(60_000, level="step")
    assert end["validation_loss"].to_dict() == pytest.approx(
        {name: as_the_document_says()[name].loss for name in end.index}
    )
    assert end.loc["wq_identity_large_mlp", "loss_vs_baseline_pct"] == pytest.approx(-0.51, abs=0.005)
    assert ours.xs("baseline", level="method")["loss_vs_baseline_pct"].eq(0).all()
    metrics = load_frames(right, "table2").metrics("query_free/base/wq_identity/s42").set_index("step")["loss"]
    assert ours.loc[("wq_identity", 30_000), "validation_loss"] == metrics[30_000]
    text = words(picture)
    assert "preset paper · 124M" in text and "W_Q = I (77.88M)" in text and "Baseline (84.95M)" in text


def test_fig1_has_the_printed_losses_where_the_axes_reach_them(right: Path, tmp_path: Path) -> None:
    picture = draw(right, "fig1")
    printed = picture.frame[picture.frame["source"] == "published"].set_index("method")
    assert printed["validation_loss"].to_dict() == {
        "baseline_small_mlp": 2.955, "baseline_small_d": 2.956, "baseline": 2.944, "wq_identity": 2.944,
        "wq_identity_large_mlp": 2.929,
    }  # fmt: skip
    marks = [[line for line in axes.lines if line.get_marker() == "D"] for axes in picture.figure.axes]
    assert [len(marks_of_axis) for marks_of_axis in marks] == [5, 5]
    # Of losses of another size the printed ones are not neighbours: the axes are not stretched to them.
    world = {name: replace(facts, loss=facts.loss + 4) for name, facts in as_the_document_says().items()}
    far = draw(write_runs(world, tmp_path), "fig1")
    assert far.figure.axes[0].get_ylim()[0] > 6
    assert not [line for line in far.figure.axes[0].lines if line.get_marker() == "D"]


def test_fig1_names_what_is_not_drawn(tmp_path: Path) -> None:
    world = as_the_document_says()
    world["wq_identity"] = replace(world["wq_identity"], outcome="diverged")
    del world["baseline_small_d"]
    picture = draw(write_runs(world, tmp_path), "fig1")
    assert "not drawn:\nBaseline (smaller d) (missing)" in words(picture)
    crosses = [line for axes in picture.figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == 2
    (key,) = picture.figure.legends
    assert not any("smaller d" in text.get_text() for text in key.get_texts()), "no key for what is not drawn"
    nothing = draw(tmp_path / "nowhere", "fig1")
    assert words(nothing).count("missing") == 5 and set(nothing.frame["source"]) == {"published"}


def test_without_a_baseline_there_are_losses_and_no_distances(tmp_path: Path) -> None:
    world = as_the_document_says()
    del world["baseline"]
    frame = draw(write_runs(world, tmp_path), "fig1").frame
    ours = frame[frame["source"] == "reproduced"]
    assert ours["loss_vs_baseline_pct"].isna().all() and ours["validation_loss"].notna().all()


def test_fig2_has_the_end_of_the_measurement_and_what_is_printed(right: Path) -> None:
    picture = draw(right, "fig2")
    groups = picture.frame.groupby(["panel", "curve", "source"])
    values = {name: rows["value"].tolist() for name, rows in groups}
    ours = picture.frame[picture.frame["source"] != "published"]
    assert ours.groupby(["panel", "curve"])["width"].agg(list).tolist() == [[256, 512, 768]] * 10
    transfer = Transfer()
    assert values["error", "mlp", "reproduced"] == pytest.approx([100 * value for value in transfer.mlp])
    assert values["error", "linear", "reproduced"] == pytest.approx([11.8, 11.9, 12.0])
    assert values["error", "best linear map", "closed form"] == pytest.approx([11.7, 11.8, 11.9])
    other = values["error", "best linear map without -X", "closed form"]
    assert other == pytest.approx([1.4 * 11.7, 1.4 * 11.8, 1.4 * 11.9])
    assert values["distance", "linear", "reproduced"] == list(transfer.linear_distance)
    assert values["error", "mlp", "published"] == [4, 6] and values["error", "linear", "published"] == [11, 14]
    assert values["distance", "mlp", "published"] == [0.002]
    assert "preset paper · 20,000 steps of 65,536" in words(picture)


def test_fig2_says_that_nothing_was_measured(tmp_path: Path) -> None:
    picture = draw(tmp_path, "fig2")
    assert "not drawn:\nthe measurement (missing)" in words(picture)
    assert set(picture.frame["source"]) == {"published"}


def test_a_demo_says_so(tmp_path: Path) -> None:
    root = write_transfer(Transfer(widths=(32, 64, 96)), write_runs(as_the_document_says(), tmp_path, "demo"))
    assert "preset demo · 0.8M" in words(draw(root, "fig1", "demo"))
    assert "preset demo · 1,000 steps of 1,024" in words(draw(root, "fig2", "demo"))
