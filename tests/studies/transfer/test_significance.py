"""Table 2 leads with what is significant: few items cannot look like significance, few seeds neither."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plumbline.core import frames as stored
from plumbline.core.errors import PlumblineError
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables import write_table
from plumbline.results.tables.provenance import collect_provenance
from plumbline.results.tables.terminal_table import format_for_terminal
from plumbline.results.tables.trace_cell import trace_cell
from plumbline.studies.transfer.tables.table2 import table2
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, tasks_of

GROUPS = ("base", "noise_floor")
SOFTPICK = "transfer/base/softpick/s42"


def grid(*flipped: tuple[int, slice | int]) -> pd.Series:
    """Answers to 16 items of each of twelve tasks: 14 are right, of boolq 8; and other ones where a task's are
    `flipped`."""
    tasks = list(tasks_of(0.5).index)
    right = np.tile(np.arange(16) < 14, (12, 1))
    right[tasks.index("boolq")] = np.arange(16) < 8
    for task, items in flipped:
        right[task, items] ^= True
    index = pd.MultiIndex.from_product([tasks, [f"i{n}" for n in range(16)]], names=["task", "item"])
    return pd.Series(right.ravel().astype(float), index=index)


def add_run(world: World, method: str, seed: int, answers: pd.Series) -> None:
    world.completed("base", method, seed, None, 5.0, source="proxy", answers=answers)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A demo whose seeds hardly differ: the baseline's in one item up and one down."""
    world = World(tmp_path / "work", "demo")
    add_run(world, "baseline", 42, grid())
    add_run(world, "baseline", 43, grid((0, 15)))
    add_run(world, "baseline", 44, grid((1, 0)))
    add_run(
        world, "softpick", 42, grid(*((task, slice(14, 16)) for task in range(8)), *((task, 0) for task in range(8)))
    )
    add_run(world, "qknorm", 42, grid(*((task, slice(0, 5)) for task in range(12))))
    add_run(world, "sigmoid_attn", 42, grid() * 0)
    world.diverged("base", "ssmax", 42, 7, [(5, 1.0), (6, 9.0), (7, math.nan)])
    return world


def test_a_difference_in_few_items_is_no_finding(world: World, tmp_path: Path) -> None:
    frames = world.load(*GROUPS)
    table = table2(frames, world.study, PUBLISHED)
    row = table.frame.set_index("method")
    # 16 items up and 8 down of 192; the seeds are one item apart.
    assert row.loc["softpick", "p_bonferroni"] < 1e-12 and row.loc["softpick", "p_items_bonferroni"] > 0.5
    assert row.loc["softpick", "climb_avg_delta"] == pytest.approx(8 / 192)
    ups = np.array([1.0] * 2 + [-1.0] + [0.0] * 13)
    spread = 8 * ups.var(ddof=1) / 16  # but for the two items in which seeds differ
    assert row.loc["softpick", "se_items"] == pytest.approx(math.sqrt(spread) / 12, rel=0.05)
    significance = dict(row["significance"])
    assert significance.pop("baseline") == "reference" and significance.pop("ssmax") == "diverged"
    assert [significance.pop(method) for method in ("softpick", "qknorm", "sigmoid_attn")] == [
        "not significant (item sampling)", "inconclusive (baseline seeds)", "worse"
    ]  # fmt: skip
    assert table.cell("qknorm", "significance_pooled").value == "one reference", "no other method has seeds here"
    assert row.loc["qknorm", "baseline_seeds_to_decide"] > 2
    assert set(significance.values()) == {"missing"} and table.cell("ssmax", "p_seeds_and_items").word == "diverged"
    assert table.warnings[0].startswith(
        "Significant (Bonferroni): 1 of 19 methods differ from Baseline on other seeds and other items (worse: "
        "Sigmoid Attention); 2 on other items alone, 2 on other seeds alone (prediction t), 3 by the paper's z. With "
    )
    errors = row.loc[["softpick", "qknorm", "sigmoid_attn"], "se_items"]
    sigma = row.loc["baseline", "climb_avg_sd_all_seeds"]
    smallest = stats.t.isf(0.05 / 19 / 2, 2) * math.sqrt(np.median(errors) ** 2 + sigma**2 * 4 / 3)
    assert table.warnings[0].endswith(f" {smallest:.3f} on.")
    assert table.warnings[1].startswith("At chance: 1 of 12 tasks, on which Baseline")
    assert "(boolq)" in table.warnings[1]
    assert any(note.startswith("Significance, the first that holds") for note in table.notes)
    out = tmp_path / "table2.csv"
    write_table.write(table, frames, out)
    terminal_text = format_for_terminal(out)
    assert terminal_text.startswith("Significant (Bonferroni): 1 of 19 methods differ") and "CLIMB-avg" in terminal_text
    facts = collect_provenance(table, frames, out.read_text())["runs"][SOFTPICK]
    assert facts["examples"].endswith("softpick/s42/examples.parquet") and len(facts["examples_sha256"]) == 64
    assert f"  examples         {facts['examples']}" in trace_cell(out, "softpick", "SE (items)")


def test_other_items_are_refused(world: World) -> None:
    other = grid().rename({"i3": "elsewhere"}, level="item")
    add_run(world, "softpick", 42, other)
    frames = world.load(*GROUPS)
    with pytest.raises(PlumblineError, match=r"softpick/s42 and .*baseline/s42 .*: 24 "):
        table2(frames, world.study, PUBLISHED)
    table = table2(replace(frames, mixed=("Mixed scores: the items.",)), world.study, PUBLISHED)
    assert table.cell("softpick", "se_items").word == table.cell("softpick", "significance").value == "other items"
    assert table.cell("qknorm", "se_items").value > 0


def test_items_are_those_of_the_scores_and_of_the_target(world: World) -> None:
    frames = world.load(*GROUPS)
    assert len(frames.examples(SOFTPICK)) == 192 and frames.examples("transfer/base/ssmax/s42").empty
    unnamed = RunFrames(work=frames.work, runs=frames.runs, scores=frames.scores, probes=frames.probes)
    with pytest.raises(PlumblineError, match=r"`reads`.*no `examples`"):
        unnamed.examples(SOFTPICK)
    path = world.root / "scores" / SOFTPICK / "examples.parquet"
    frame = stored.read(path, "examples")
    for wrong in (
        frame.assign(value=1.0),
        frame.assign(run_id="f" * 16),
        frame[frame["task"] != "boolq"],
        pd.concat([frame, frame]),
    ):
        stored.write(wrong, "examples", path)
        with pytest.raises(PlumblineError, match=r"examples\.parquet .*scores .* to evaluate it"):
            frames.examples(SOFTPICK)
    path.unlink()
    with pytest.raises(PlumblineError, match=r"examples\.parquet.*although"):
        frames.examples(SOFTPICK)


def test_two_items_a_task_tell_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, "smoke")
    few = grid().groupby("task", sort=False).head(2)
    for seed in (42, 43):
        add_run(world, "baseline", seed, few)
    add_run(world, "softpick", 42, few * 0)
    table = table2(world.load(*GROUPS), world.study, PUBLISHED)
    assert table.cell("softpick", "significance").value == "inconclusive (no item error)"
    assert {table.cell("softpick", name).word for name in ("se_items", "p_items", "p_seeds_and_items")} == {
        "too few items"
    }
    assert "on other items alone" in table.warnings[0] and not table.warnings[1].startswith("At chance")


def test_where_no_method_is_scored_nothing_is_said_of_any(tmp_path: Path) -> None:
    world = World(tmp_path, "smoke")
    add_run(world, "baseline", 42, grid())
    table = table2(world.load(*GROUPS), world.study, PUBLISHED)
    assert table.warnings[0].startswith("Nothing could be tested: Baseline ")
