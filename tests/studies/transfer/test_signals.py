"""Accuracy, log-probabilities and losses of the same runs, each in units of its own spread over the seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.stats.noise_floor import noise_floor, two_sided_t
from plumbline.studies.transfer.tables.signals import signals
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, tasks_of

GROUPS = ("base", "noise_floor")
LOSSES = {42: 5.00, 43: 5.01, 44: 5.02}


def run(world: World, method: str, seed: int, accuracy: float, loss: float) -> None:
    """Log-probabilities that follow the loss, on tasks of other lengths; bits a byte that follow it too."""
    tasks = tasks_of(accuracy)
    lengths = pd.Series(np.arange(1.0, 13.0), index=tasks.index)
    more = {"logprob_gold": -loss * lengths, "bits_per_byte": loss / lengths}
    world.completed("base", method, seed, tasks, loss, source="proxy", more=more)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A demo in which a method's loss is far from the baseline's, and its accuracy is not."""
    world = World(tmp_path, "demo")
    for seed, loss in LOSSES.items():
        run(world, "baseline", seed, 0.30 + (seed - 43) / 100, loss)
    run(world, "softpick", 42, 0.305, 4.50)
    run(world, "hyper", 42, 0.295, 5.10)
    world.completed("base", "qknorm", 42, tasks_of(0.31), 5.0)  # without any other metric
    world.diverged("base", "ssmax", 42, 7, [(5, 1.0), (6, 9.0), (7, float("nan"))])
    return world


def test_each_measure_has_its_own_floor_and_direction(world: World) -> None:
    table = signals(world.load(*GROUPS), world.study, PUBLISHED)
    rows = table.frame.set_index("method")
    softpick, floor = rows.loc["softpick"], noise_floor(LOSSES.values())
    assert (softpick["climb_avg_z"], softpick["validation_loss_z"]) == pytest.approx((0.5, -51.0))
    assert softpick["validation_loss_t"] == pytest.approx(-51 / np.sqrt(4 / 3))
    assert softpick["validation_loss_p_bonferroni"] == pytest.approx(19 * two_sided_t(-51 / np.sqrt(4 / 3), 2))
    # What is a line in the loss has the loss's z, whichever its unit; and the sign of its direction.
    assert (softpick["answer_logprob_z"], softpick["bits_per_byte_z"]) == pytest.approx((51.0, -51.0))
    assert softpick["answer_logprob"] == pytest.approx(-4.5 * 6.5) and softpick["bits_per_byte_sigma_over_seeds"] > 0
    assert softpick["validation_loss_smallest_significant_delta"] == pytest.approx(floor.smallest_called(m=19))
    spread = np.std([4.50, 5.10, 5.0], ddof=1)
    assert (
        softpick["validation_loss_sigma_over_methods"],
        softpick["validation_loss_sigma_methods_over_sigma_seeds"],
    ) == pytest.approx((spread, spread / 0.01))
    headings = {column.name: column.header for column in table.columns}
    assert headings["validation_loss_z"] == "z loss ↓" and headings["climb_avg_z"] == "z CLIMB-avg ↑"
    assert table.cell("qknorm", "answer_logprob_z").word == "missing"
    assert table.cell("ssmax", "bits_per_byte_t").word == "diverged"
    assert table.cell("baseline", "answer_logprob_p_bonferroni").word == "reference"
    assert rows.loc["qknorm", "validation_loss_z"] == -1
    lead = table.warnings[0]
    assert lead.startswith("Signal over noise") and f"loss ↓ {spread / 0.01:.1f}." in lead
    # Of 3 methods' accuracy and loss against 3 seeds: sqrt(F(2, 2)) has the median 1, and is above 2 in 1 of 5.
    assert "20 % of repeats (3 methods against 3" in lead
    assert sum("is called in 63 % of repeats, were σ the true one" in note for note in table.notes) == 4
    assert any("loss (lower is better): Baseline 5.0100, σ 0.01 over 3 seeds" in note for note in table.notes)
    assert any("is 0.22, 22.5σ" in note for note in table.notes)
    assert "0.52 and 6.3 times one over 3" in table.notes[5]


def test_without_a_floor_there_are_words(tmp_path: Path) -> None:
    world = World(tmp_path, "smoke")
    run(world, "baseline", 42, 0.3, 5.0)
    run(world, "softpick", 42, 0.31, 4.9)
    table = signals(world.load(*GROUPS), world.study, PUBLISHED)
    for name in (
        "answer_logprob_z",
        "validation_loss_t",
        "climb_avg_sigma_methods_over_sigma_seeds",
        "bits_per_byte_smallest_significant_delta",
    ):
        assert table.cell("softpick", name).word == "no noise floor"
    assert table.cell("softpick", "validation_loss_delta").value == pytest.approx(-0.1)
    assert table.warnings[0].startswith("Preset: smoke")
    assert any("no noise floor (σ nan, seeds with a value: 1)" in note for note in table.notes)
