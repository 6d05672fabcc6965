"""Designs of a screen: any number of runs, forbidden pairs, levels that are dropped, and what falls on what."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.stats.d_optimal_design import FactorSpace, d_efficiency
from plumbline.verdict.screen import screen_design
from plumbline.verdict.screen.screen_design import (
    WITH,
    WITHOUT,
    Factor,
    Level,
    ScreenDesign,
    augment_design,
    count_parameters,
    describe_aliases,
    drop_levels,
    insert_single_levels,
    make_design,
    name_level,
    predict_errors,
)


def ideas(count: int) -> list[Factor]:
    return [Factor(f"idea-{number}") for number in range(count)]


MIXED = [Factor("mixer", tuple("abcd")), Factor("norm"), Factor("ffn", ("glu", "relu2", "moe"))]


def holds_pair(design: ScreenDesign, pair: tuple[Level, Level]) -> bool:
    return any(set(pair) <= set(design.settings(row).items()) for row in range(len(design.rows)))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 14), st.integers(0, 20), st.integers(0, 9))
def test_a_run_more_or_less_never_breaks_a_design(count: int, more: int, seed: int) -> None:
    runs = count + 1 + more
    design = make_design(ideas(count), runs=runs, seed=seed)
    assert len(design.rows) == runs == design.looks[-1] and design.construction
    errors = predict_errors(design)
    assert list(errors) == list(design.effects) and len(errors) == count
    assert all(2 / math.sqrt(runs) - 1e-9 <= error < 2.6 / math.sqrt(runs) for error in errors.values())
    assert make_design(ideas(count), runs=runs, seed=seed) == design


@pytest.mark.parametrize(
    ("count", "runs", "name"),
    [
        (3, 8, "full factorial"),
        (5, 16, "regular fraction"),
        (20, 40, "folded over"),
        (60, 128, "folded over"),
        (60, 64, "Plackett and Burman"),
        (60, 63, "D-optimal"),
    ],
)
def test_the_standard_design_is_taken_where_there_is_one(count: int, runs: int, name: str) -> None:
    design = make_design(ideas(count), runs=runs, seed=1)
    assert name in design.construction
    least = 1.0 if name != "D-optimal" else 0.95
    assert d_efficiency(design.space, design.levels_NF) >= least - 1e-9


def test_both_halves_of_a_folded_design_are_designs() -> None:
    design = make_design(ideas(60), runs=128, seed=3)
    assert design.looks == (64, 128)
    for half in (design.levels_NF[:64], design.levels_NF[64:]):
        assert d_efficiency(design.space, half) == pytest.approx(1.0)
    assert sorted(map(tuple, 1 - design.levels_NF[:64])) == sorted(map(tuple, design.levels_NF[64:]))


def test_the_seed_draws_order_and_columns() -> None:
    first, second = (make_design(ideas(20), runs=32, seed=seed) for seed in (1, 2))
    assert first.rows != second.rows and sorted(first.rows) != sorted(second.rows)


FORBIDDEN = ((("mixer", "b"), ("norm", WITH)), (("mixer", "c"), ("ffn", "moe")))


@pytest.mark.parametrize("runs", [8, 13, 24, 31])
def test_forbidden_pairs_are_never_in_one_run_and_cost_little(runs: int) -> None:
    design = make_design(MIXED, forbidden=FORBIDDEN, runs=runs, seed=4)
    assert not any(holds_pair(design, pair) for pair in FORBIDDEN)
    assert max(predict_errors(design).values()) < 4.5 / math.sqrt(runs) * (1.6 if runs < 10 else 1)


def test_two_ideas_that_exclude_each_other_are_both_estimated() -> None:
    pair = (("idea-0", WITH), ("idea-1", WITH))
    design = make_design(ideas(12), forbidden=[pair], runs=20, seed=1)
    assert not holds_pair(design, pair)
    assert all(error < 3.4 / math.sqrt(20) for error in predict_errors(design).values())


@pytest.mark.parametrize(
    ("factors", "forbidden", "runs", "named"),
    [
        (ideas(5), (), 5, "6 runs"),
        ([Factor("a"), Factor("a")], (), 8, "a"),
        ([Factor("a", ("x",))], (), 8, "a"),
        (ideas(3), [(("idea-0", WITH), ("idea-9", WITH))], 8, "idea-9"),
        (ideas(3), [(("idea-0", WITH), ("idea-0", WITHOUT))], 8, "one factor"),
        (ideas(3), [(("idea-0", WITHOUT), ("idea-1", WITHOUT))], 8, "idea-0.*baseline"),
        (ideas(3), [(("idea-0", WITH), ("idea-1", WITHOUT))], 8, "idea-1.*baseline"),
    ],
)
def test_what_no_design_can_be_made_of_is_refused_by_name(
    factors: list[Factor], forbidden: list[tuple[Level, Level]], runs: int, named: str
) -> None:
    with pytest.raises(PlumblineError, match=named):
        make_design(factors, forbidden=forbidden, runs=runs, seed=1)


def test_a_search_that_leaves_effects_tied_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(space: FactorSpace, runs: int, *_: object, **__: object) -> np.ndarray:
        return np.arange(runs)[:, None] % 2 * np.eye(1, len(space.sizes), dtype=int)

    monkeypatch.setattr(screen_design, "make_d_optimal", search)
    with pytest.raises(PlumblineError, match=r"8 runs.*`norm`.*more"):
        make_design(MIXED, runs=8, seed=1)


def test_runs_that_were_lost_are_made_up_for() -> None:
    design = make_design(ideas(20), runs=24, seed=5)
    lost = [1, 7, 8]
    more = augment_design(design, lost_rows=lost, runs=3, seed=1)
    assert more.rows[:24] == design.rows and len(more.rows) == 27 == more.looks[-1]
    there = [row for row in range(27) if row not in lost]
    assert d_efficiency(more.space, more.levels_NF[there]) == pytest.approx(1.0)
    assert augment_design(design, runs=0, seed=1) is design


def test_new_rows_have_no_dropped_level_and_no_forbidden_pair() -> None:
    design = make_design(MIXED, forbidden=FORBIDDEN, runs=16, seed=4)
    more = augment_design(design, dropped=[("mixer", "d"), ("norm", WITH)], lost_rows=[0, 1], runs=6, seed=2)
    assert not any(holds_pair(more, pair) for pair in FORBIDDEN)
    assert all("d" not in row and row[1] == WITHOUT for row in more.rows[16:])
    with pytest.raises(PlumblineError, match="mixer"):
        augment_design(design, dropped=[("mixer", "a")], runs=2, seed=2)


def test_without_a_dropped_level_a_design_stays_orthogonal() -> None:
    design = make_design(ideas(12), runs=32, seed=5)
    crashed = [row for row in range(16) if design.settings(row)["idea-3"] == WITH]
    left = drop_levels(design, dropped=[("idea-3", WITH)], after=16, again=crashed)
    assert left.rows[:16] == design.rows[:16] and len(left.rows) == 32 + len(crashed) == left.looks[-1]
    assert all(left.settings(row)["idea-3"] == WITHOUT for row in range(16, len(left.rows)))
    there = [row for row in range(len(left.rows)) if row not in crashed]
    x_NF = 2 * np.delete(left.levels_NF[there], 3, axis=1) - 1
    assert (x_NF.T @ x_NF == 32 * np.eye(11)).all()


def test_a_pair_that_crashes_is_forbidden_from_then_on() -> None:
    design, pair = make_design(ideas(8), runs=16, seed=5), (("idea-1", WITH), ("idea-2", WITH))
    left = drop_levels(design, dropped=(), clashing=[pair], after=4, again=[0])
    assert pair in left.forbidden and len(left.rows) == 17
    assert not any(set(pair) <= set(left.settings(row).items()) for row in range(4, 17))


def test_a_level_is_run_alone() -> None:
    design = make_design(MIXED, forbidden=FORBIDDEN, runs=16, seed=4)
    more = insert_single_levels(design, [("mixer", "d"), ("norm", WITH)], after=5)
    assert more.rows[5:7] == (("d", WITHOUT, "glu"), ("a", WITH, "glu"))
    assert more.rows[:5] == design.rows[:5] and more.rows[7:] == design.rows[5:]


@pytest.mark.parametrize(("count", "runs", "line"), [(6, 32, "clear"), (11, 12, "0.17"), (20, 32, "0.50")])
def test_aliases_are_told_in_words(count: int, runs: int, line: str) -> None:
    lines = describe_aliases(make_design(ideas(count), runs=runs, seed=1))
    assert line in lines[0]
    assert len(lines) == (2 + count if line == "0.50" else 2)
    assert describe_aliases(make_design(ideas(1), runs=4, seed=1)) == []


def test_names_and_parameters() -> None:
    assert (name_level(("warmup", WITH)), name_level(("ffn", "moe"))) == ("`warmup`", "`ffn` `moe`")
    assert count_parameters(MIXED) == 7 and count_parameters(ideas(4)) == 5
