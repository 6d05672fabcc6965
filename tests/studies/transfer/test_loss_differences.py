"""What validation loss distinguishes: by hand, in the first lines of Table 2, and not at the paper's size."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plumbline.results.tables import write_table
from plumbline.results.tables.terminal_table import format_for_terminal
from plumbline.studies.transfer.tables.table2 import table2
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, tasks_of

GROUPS = ("base", "noise_floor")
SEEDS = dict(zip(range(42, 48), (6.55, 6.58, 6.54, 6.57, 6.56, 6.53), strict=True))
MEAN, SIGMA = float(np.mean([*SEEDS.values()])), float(np.std([*SEEDS.values()], ddof=1))
#: The smallest distance of one run from six seeds that is significant after Bonferroni over 19.
SMALLEST = stats.t.isf(0.05 / 19 / 2, 5) * SIGMA * math.sqrt(1 + 1 / 6)


def losses(tmp_path: Path, preset: str, **of_methods: float) -> World:
    """Runs with these losses; their accuracies are all the same except for the order in which they lie."""
    world = World(tmp_path / preset, preset)
    for seed, loss in SEEDS.items():
        if world.study.key("base", "baseline", seed) in world.study.runs:
            world.completed("base", "baseline", seed, tasks_of(0.30 + seed / 1e5), loss)
    for number, (method, loss) in enumerate(of_methods.items()):
        world.completed("base", method, 42, tasks_of(0.31 + number / 1e4), loss)
    world.diverged("base", "ssmax", 42, 7, [(5, 1.0), (7, math.nan)])
    return world


@pytest.fixture
def demo(tmp_path: Path) -> World:
    return losses(
        tmp_path,
        "demo",
        softpick=MEAN - 1.01 * SMALLEST,
        sigmoid_attn=MEAN + 1.01 * SMALLEST,
        qknorm=MEAN - 0.99 * SMALLEST,
        geglu_ffn=MEAN - 0.1 * SIGMA,
    )


def test_run_counts_from_smallest_distance_that_six_seeds_tell(demo: World) -> None:
    table = table2(demo.load(*GROUPS), demo.study, PUBLISHED)
    resolved_by_method = {row["method"].value: row["loss_resolved"].value for row in table.rows}
    assert [resolved_by_method[method] for method in ("softpick", "sigmoid_attn", "qknorm", "geglu_ffn")] == [
        "lower", "higher", "not resolved", "not resolved"
    ]  # fmt: skip
    assert resolved_by_method["baseline"] == "reference" and resolved_by_method["ssmax"] == "diverged"
    assert resolved_by_method["hyper"] == "missing"
    cell = table.cell("softpick", "p_validation_loss_bonferroni")
    t = -1.01 * SMALLEST / (SIGMA * math.sqrt(7 / 6))
    assert cell.value == pytest.approx(19 * 2 * stats.t.sf(-t, 5), rel=1e-6)
    assert table.cell("softpick", "t_validation_loss").value == pytest.approx(t)
    assert set(cell.runs) >= {"transfer/base/softpick/s42", "transfer/base/baseline/s47"}
    assert table.cell("geglu_ffn", "seeds_to_resolve_loss").word == "more than 50"
    # k seeds beside six or more, equal spread: by scipy's noncentral t, and one fewer is not enough.
    needed = table.cell("qknorm", "seeds_to_resolve_loss").value

    def power(k: int) -> float:
        df, ncp = k + max(k, 6) - 2, 0.99 * SMALLEST / SIGMA / math.sqrt(1 / k + 1 / max(k, 6))
        critical = stats.t.isf(0.05 / 19 / 2, df)
        return float(stats.nct.sf(critical, df, ncp) + stats.nct.cdf(-critical, df, ncp))

    assert power(needed) >= 0.8 > power(needed - 1)


def test_the_first_lines_say_what_this_size_resolves(demo: World, tmp_path: Path) -> None:
    frames = demo.load(*GROUPS)
    table = table2(frames, demo.study, PUBLISHED)
    first, second, third, fourth = table.warnings[:4]
    assert first == (
        "Resolved by validation loss at 1.2M and 44 steps: 2 of 19 methods, one run each against 6 seeds of Baseline "
        f"(prediction t, Bonferroni). Lower: Softpick {-1.01 * SMALLEST:+.2f}; higher: Sigmoid Attention "
        f"{1.01 * SMALLEST:+.2f}."
    )
    label = demo.study.label("geglu_ffn")
    assert second.startswith("Not resolved: 2. Seeds that would resolve them")
    assert "Baseline or its 6" in second
    assert f"more than 50: {label}" in second
    assert third.startswith("Without a loss to judge: ") and "SSMax (diverged)" in third and "(missing)" in third
    assert fourth.startswith("Significant (Bonferroni)")
    assert [row["method"].value for row in table.rows][:3] == ["softpick", "qknorm", "geglu_ffn"]
    assert table.title.endswith("sorted by validation loss.")
    assert any("methods at the paper's" in warning for warning in table.warnings)
    out = tmp_path / "table2.csv"
    write_table.write(table, frames, out)
    terminal_text = format_for_terminal(out)
    head = next(line for line in terminal_text.splitlines() if line.startswith("Method"))
    assert terminal_text.startswith("Resolved by validation loss") and max(map(len, terminal_text.splitlines())) <= 80
    places = [head.find(name) for name in ("by val. loss", "Δ val. loss", "seeds needed", "CLIMB-avg")]
    assert -1 not in places and places == sorted(places), head


def test_at_the_papers_size_accuracy_leads(tmp_path: Path) -> None:
    world = losses(tmp_path, "paper", softpick=MEAN - 9 * SIGMA, sigmoid_attn=MEAN + 9 * SIGMA)
    table = table2(world.load(*GROUPS), world.study, PUBLISHED)
    assert table.warnings[0].startswith("Significant (Bonferroni)") and table.rows[0]["method"].value == "sigmoid_attn"
    assert [column.name for column in table.columns][2] == "significance"


def test_one_seed_resolves_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, "demo")
    world.completed("base", "baseline", 42, tasks_of(0.3), 6.5)
    world.completed("base", "softpick", 42, tasks_of(0.3), 6.1)
    table = table2(world.load(*GROUPS), world.study, PUBLISHED)
    assert table.cell("softpick", "loss_resolved").value == "no noise floor"
    assert table.warnings[0].startswith("Significant (Bonferroni)")
    assert any("nothing about the methods" in warning for warning in table.warnings)
