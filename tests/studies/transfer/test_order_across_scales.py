"""What two scales state about the methods: by hand, in a world without an order, with gaps, and with nothing at all."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plumbline.results.tables.table import Table
from plumbline.specs import study_parts
from plumbline.stats.protocol_error import simulate_pooled_test
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, tasks_of

#: Baseline, six seeds.
SEEDS = (0.00, 0.02, -0.02, 0.01, -0.01, 0.00)


def make_table(world: World) -> Table:
    groups = world.study.definition["targets"]["order_across_scales"]["runs"]
    return study_parts.function("transfer", "tables", "order_across_scales")(
        world.load(*groups), world.study, PUBLISHED
    )


def world_of(root: Path, base: dict[str, float], large: dict[str, float]) -> World:
    """Six and four seeds of the baseline, and of each method one mean with three and two seeds about it."""
    world = World(root, "evening")
    for scale, at, effects, seeds in (("base", 5.2, base, (42, 43, 44)), ("large", 5.0, large, (42, 43))):
        for seed, noise in enumerate(SEEDS if scale == "base" else SEEDS[:4], 42):
            world.completed(scale, "baseline", seed, None, at + noise)
        for method, effect in effects.items():
            for place, seed in enumerate(seeds):
                noise = 0.02 * (place - (len(seeds) - 1) / 2)
                world.completed(scale, method, seed, None, at + effect + noise)
    return world


def test_a_row_by_hand(tmp_path: Path) -> None:
    table = make_table(world_of(tmp_path, {"softpick": -0.10, "qknorm": -0.02}, {"softpick": -0.06}))
    row = table.frame.set_index("method").loc["softpick"]
    # Five degrees of freedom of the baseline, and two of each method.
    squares = 5 * np.var(SEEDS, ddof=1) + 2 * 2 * 0.02**2
    error = math.sqrt(squares / 9) * math.sqrt(1 / 3 + 1 / 6)
    assert row["validation_loss_minus_baseline_base"] == pytest.approx(-0.10)
    assert row["half_interval_95_base"] == pytest.approx(stats.t.isf(0.025, 9) * error)
    assert row["p_bonferroni_base"] == pytest.approx(2 * 19 * stats.t.sf(0.10 / error, 9))
    assert row["resolved_base"] == "lower" and row["seeds_base"] == 3 and row["seeds_large"] == 2
    assert row["spread_of_own_seeds_base"] == pytest.approx(0.02)
    assert list(table.frame["method"][:3]) == ["softpick", "qknorm", "baseline"], "lowest loss first"
    assert table.cell("qknorm", "resolved_base").value == "not resolved"
    assert table.cell("geglu_ffn", "resolved_base").value == table.cell("ssmax", "resolved_large").value == "missing"
    assert table.cell("qknorm", "resolved_large").value == "not run"
    assert table.cell("baseline", "p_bonferroni_base").word == "reference"
    assert row["z_published"] == 4.47
    assert "1.2M and 330 steps: 1 of 2 methods" in table.warnings[0]
    assert "Lower: Softpick -0.10." in table.warnings[0]


def test_note_says_how_often_nothing_is_called_something(tmp_path: Path) -> None:
    world = world_of(tmp_path, {"softpick": -0.10, "qknorm": -0.02}, {"softpick": -0.06})
    for place, seed in enumerate((42, 43, 44)):
        world.completed("base", "ssmax", seed, None, 5.2 + 0.2 * (place - 1))
    (note_of_base,) = [note for note in make_table(world).notes if note.startswith("1.2M: pooled spread")]
    seeds, own = [6, 3, 3, 3], [float(np.std(SEEDS, ddof=1)), 0.02, 0.02, 0.2]
    order = [method for method in world.study.methods if method in ("softpick", "qknorm", "ssmax")]
    own = own[:1] + [0.2 if method == "ssmax" else 0.02 for method in order]
    alike, as_here = (simulate_pooled_test(spreads, seeds, m=19) for spreads in ([1.0] * 4, own))
    assert f"{alike:.1%} if all spread alike" in note_of_base
    assert as_here > 2 * alike
    lone = World(tmp_path / "lone", "evening")
    for seed in (42, 43):
        lone.completed("base", "baseline", seed, None, 5.2 + 0.01 * (seed - 42))
    lone.completed("base", "softpick", 42, None, 4.0)
    assert not any("simulated worlds" in note for note in make_table(lone).notes), "one seed has no spread of its own"


def test_accuracy_has_the_same_test_of_all_seeds(tmp_path: Path) -> None:
    world = World(tmp_path, "evening")
    for method, scores in (
        ("baseline", (0.40, 0.41, 0.42)),
        ("softpick", (0.47, 0.48, 0.49)),
        ("qknorm", (0.40, 0.42)),
    ):
        for seed, score in enumerate(scores, 42):
            world.completed("base", method, seed, tasks_of(score), 5.2 + 0.01 * score)
    table = make_table(world)
    error = math.sqrt((2e-4 + 2e-4 + 2e-4) / 5) * math.sqrt(2 / 3)
    row = table.frame.set_index("method").loc["softpick"]
    assert row["climb_avg_minus_baseline_base"] == pytest.approx(0.07)
    assert row["climb_avg_p_bonferroni_base"] == pytest.approx(2 * 19 * stats.t.sf(0.07 / error, 5))
    (accuracy_note,) = [note for note in table.notes if "by CLIMB-avg" in note]
    assert "resolved 1 of 2 methods: Softpick +0.07" in accuracy_note


METHODS = ("softpick", "sigmoid_attn", "layerscale", "sandwich_norm", "ssmax", "diff_attn", "hybrid_norm")


@pytest.mark.parametrize(
    ("order", "phrase", "remark"),
    [(1, "28 of 28 pairs of 8 methods", "p 1"), (-1, "0 of 28 pairs", "p 1.00")],
    ids=["kept", "reversed"],
)
def test_how_much_of_the_order_is_kept(order: int, phrase: str, remark: str, tmp_path: Path) -> None:
    base = {method: 0.1 * (place - 3.5) for place, method in enumerate(METHODS)}
    table = make_table(world_of(tmp_path, base, {method: order * effect for method, effect in base.items()}))
    (warning,) = [line for line in table.warnings if line.startswith("Decision accuracy, 1.2M for 2.8M")]
    assert phrase in warning and "tells apart" in warning
    assert (remark in warning) if order < 0 else ("p 1.00" not in warning)
    assert any("z of accuracy at 1.2B (Table 2): " in line and "of 28 pairs" in line for line in table.warnings)


def test_without_a_spread_of_seeds_nothing_is_resolved(tmp_path: Path) -> None:
    none = make_table(World(tmp_path / "none", "evening"))
    assert set(none.frame["resolved_base"]) == {"missing", "reference"}
    world = World(tmp_path, "evening")
    world.completed("base", "baseline", 42, None, 5.2)
    world.completed("base", "softpick", 42, None, 4.0)
    table = make_table(world)
    assert table.cell("softpick", "resolved_base").value == "no spread"
    assert table.warnings[0].startswith("At 1.2M and 330 steps: no spread of seeds")
    assert not any("Decision accuracy" in line for line in table.warnings)
    # Seeds without any spread are none either.
    for method, loss in (("baseline", 5.2), ("softpick", 4.0)):
        world.completed("base", method, 43, None, loss)
    assert make_table(world).cell("softpick", "resolved_base").value == "no spread"


@pytest.mark.parametrize("scale", ["base", "large"])
def test_method_of_which_seed_diverged_is_not_judged_by_others(scale: str, tmp_path: Path) -> None:
    effects = {"softpick": -0.5, "layerscale": -0.4, "ssmax": 0.3}
    world = world_of(tmp_path, effects, effects)
    world.diverged(scale, "softpick", 43, 9, [(5, 1.0)])
    table = make_table(world)
    assert table.cell("softpick", f"resolved_{scale}").value == "diverged"
    assert table.cell("softpick", f"validation_loss_minus_baseline_{scale}").value is None
    lead = table.warnings[0 if scale == "base" else 1]
    seeds = 3 if scale == "base" else 2
    assert "2 of 2 methods" in lead and f"Not judged: Softpick (1 of {seeds}" in lead
    assert "Softpick -" not in lead and "28 of" not in " ".join(table.warnings)


def test_without_all_seeds_of_the_baseline_nothing_is_judged(tmp_path: Path) -> None:
    world = world_of(tmp_path, {"softpick": -0.5}, {})
    world.diverged("base", "baseline", 44, 9, [(5, 1.0)])
    table = make_table(world)
    assert "no method beside Baseline" in table.warnings[0] and "Baseline (1 of 6 seeds diverged)" in table.warnings[0]
    assert table.cell("softpick", "resolved_base").value == "no noise floor"


def test_who_diverges_in_print_comes_last_there(tmp_path: Path) -> None:
    """HybridNorm, SSMax and HyperConnections have no accuracy at 3B: nothing that trains is as bad."""
    order = ["softpick", "qknorm", "sandwich_norm", "hybrid_norm", "ssmax", "hyper"]
    table = make_table(world_of(tmp_path, {method: 0.1 * place for place, method in enumerate(order)}, {}))
    alone = next(line for line in table.warnings if "accuracy at 3B (Table 3)" in line)
    last = next(line for line in table.warnings if line.startswith("With those last that diverge there"))
    # Baseline and the three that complete have six pairs; each of them beside the three that diverge nine more, and the
    # baseline three; those three, tied, one and a half of three.
    assert "of 6 pairs of 4 methods" in alone and "of 21 pairs of 7 methods" in last
