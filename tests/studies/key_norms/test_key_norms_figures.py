"""The figures: their numbers are the runs', the decay line stands in each panel, gaps are reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures.figure_style import FigureWithData
from plumbline.specs import study_parts
from tests.studies.key_norms.synthetic_runs import PUBLISHED, World

FIGURES = study_parts.targets("key_norms", "figures")
PROBES = {"fig1": "key_norm", "fig2": "entropy", "fig3": "query_norm"}

#: The column of a figure's values.
QUANTITIES = {"fig1": "key_l2_norm", "fig2": "attention_entropy", "fig3": "query_l2_norm"}


def draw(world: World, name: str, published: PrintedNumbers = PUBLISHED) -> FigureWithData:
    return study_parts.function("key_norms", "figures", name)(world.load(), world.study, published)


def words(picture: FigureWithData) -> str:
    texts = [text for axes in picture.figure.axes for text in axes.texts]
    return "\n".join([*(text.get_text() for text in texts), picture.figure.get_suptitle()])


@pytest.mark.parametrize("name", FIGURES)
def test_every_layer_and_group_of_every_arm_is_drawn(right: World, name: str) -> None:
    picture = draw(right, name)
    assert "88.6M" in words(picture)
    quantity = QUANTITIES[name]
    points = picture.frame[~picture.frame["curve"].str.contains("decay|printed")]
    lines = points.groupby("arm")["curve"].nunique()
    assert lines.to_dict() == dict.fromkeys(["as_published", "frozen_gains", "no_decay"], 22 + 3)
    read = right.load().probes
    mine = read[(read["method"] == "no_decay") & (read["probe"] == PROBES[name]) & (read["layer"] == 5)]
    values = points[(points["arm"] == "no_decay") & (points["curve"] == "layer 5")].set_index("step")[quantity]
    expected = mine.groupby("step")["value"].mean()
    assert values.index.tolist() == expected.index.tolist() and np.allclose(values, expected)
    early = points[(points["arm"] == "as_published") & (points["curve"] == "early")].set_index("step")[quantity]
    pair = [points[(points["arm"] == "as_published") & (points["curve"] == f"layer {n}")][quantity] for n in (0, 1)]
    assert np.allclose(early, (pair[0].to_numpy() + pair[1].to_numpy()) / 2)


def test_fig1_has_the_decay_line_and_the_printed_norms(right: World) -> None:
    frame = draw(right, "fig1").frame
    alone = frame[frame["curve"] == "weight decay alone"].set_index(["arm", "step"])["key_l2_norm"]
    assert alone["as_published", 977] == pytest.approx(2.475, abs=5e-4)
    assert alone["no_decay", 977] == alone["frozen_gains", 977] == 8.0
    printed = frame[frame["curve"].str.contains("printed")]
    assert printed["key_l2_norm"].tolist() == [5.3, 9.3, 9.8] and printed["arm"].eq("as_published").all()
    assert printed["step"].eq(977).all()


@pytest.mark.parametrize("name", FIGURES)
def test_an_arm_that_is_not_there_is_named(tmp_path, right: World, name: str) -> None:
    arms = {"as_published": replace(right.arms["as_published"], outcome="diverged"), "no_decay": right.arms["no_decay"]}
    picture = draw(World(tmp_path, arms=arms), name)
    text = words(picture)
    assert "not drawn:\nmissing" in text and "diverged" in text
    assert "frozen_gains" not in set(picture.frame.loc[picture.frame["curve"] != "weight decay alone", "arm"])


def test_nothing_at_all_is_a_picture_too(tmp_path, right: World) -> None:
    world = World(tmp_path, arms={"no_decay": right.arms["no_decay"]})
    assert draw(World(tmp_path / "b", arms=world.arms), "fig2").frame["arm"].unique().tolist() == ["no_decay"]
