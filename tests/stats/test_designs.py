"""Designs of factors: orthogonal ones, D-optimal ones next to optima that are known, and any number of runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.stats.d_optimal_design import (
    FactorSpace,
    d_efficiency,
    information_bound,
    make_d_optimal,
    optimize_rows,
)
from plumbline.stats.two_level_designs import (
    cut_larger_design,
    list_orders,
    list_standard_designs,
    make_burman,
    make_fraction,
)

#: Largest determinants of n x n matrices of -1 and 1 (OEIS A003433): of a saturated design of n - 1 factors in n runs.
LARGEST = {3: 4, 4: 16, 5: 48, 6: 160, 7: 576, 8: 4096, 9: 14336, 10: 73728, 11: 327680, 13: 14929920}


def signs(space: FactorSpace, levels_NF: np.ndarray) -> np.ndarray:
    """The model of two-level factors in -1 and 1, with its column of ones."""
    x_NP = 2 * space.model_matrix(levels_NF) - 1
    x_NP[:, 0] = 1
    return x_NP


@pytest.mark.parametrize("order", list_orders(128))
def test_plackett_burman_designs_are_orthogonal_and_balanced(order: int) -> None:
    levels_NF = make_burman(order)
    assert levels_NF.shape == (order, order - 1) and set(np.unique(levels_NF)) == {-1, 1}
    assert (levels_NF.T @ levels_NF == order * np.eye(order - 1)).all() and not levels_NF.sum(axis=0).any()


@pytest.mark.parametrize("factors", [2, 3, 4, 5, 6, 8, 11])
def test_fractions_and_interactions_are_clear_of_interactions(factors: int) -> None:
    levels_NF = make_fraction(factors)
    twos = [levels_NF[:, one] * levels_NF[:, two] for one in range(factors) for two in range(one)]
    every = np.column_stack([np.ones(len(levels_NF)), levels_NF, *twos])
    assert np.abs(every.T @ every - len(levels_NF) * np.eye(every.shape[1])).max() < 1e-9


@pytest.mark.parametrize(("factors", "runs"), [(20, 40), (12, 32), (60, 128), (16, 32)])
def test_a_folded_design_is_clear_of_interactions(factors: int, runs: int) -> None:
    designs = list(list_standard_designs(factors, runs, np.random.default_rng(1)))
    (folded,) = (design for design in designs if "folded" in design.construction)
    x_NF = folded.levels_NF
    assert folded.clear and len(x_NF) == runs and (x_NF[: runs // 2] == -x_NF[runs // 2 :]).all()
    twos = np.column_stack([x_NF[:, one] * x_NF[:, two] for one in range(factors) for two in range(one)])
    assert not (x_NF.T @ twos).any() and (x_NF.T @ x_NF == runs * np.eye(factors)).all()


@pytest.mark.parametrize("runs", LARGEST)
def test_exchange_reaches_the_largest_saturated_determinant(runs: int) -> None:
    space = FactorSpace((2,) * (runs - 1))
    levels_NF = make_d_optimal(space, runs, np.random.default_rng(0))
    assert abs(np.linalg.det(signs(space, levels_NF))) == pytest.approx(LARGEST[runs], rel=1e-9)


@pytest.mark.parametrize(
    ("factors", "runs", "expected"),
    [  # Galil and Kiefer 1980: next to a Hadamard matrix of 12, one run more, two more, one less
        (5, 13, 12.0**5 * (12 + 6)),
        (5, 14, 12.0**4 * (12 + 6) ** 2),
        (5, 11, 12.0**5 * (12 - 6)),
        (7, 17, 16.0**7 * (16 + 8)),
        (7, 15, 16.0**7 * (16 - 8)),
    ],
)
def test_exchange_reaches_optima_of_runs_not_in_fours(factors: int, runs: int, expected: float) -> None:
    space = FactorSpace((2,) * factors)
    starts = [(cut_larger_design(factors, runs, np.random.default_rng(2)) + 1) // 2]
    x_NP = signs(space, make_d_optimal(space, runs, np.random.default_rng(0), starts=starts))
    assert np.linalg.det(x_NP.T @ x_NP) >= expected * (0.93 if runs % 4 == 2 else 1 - 1e-9)


def test_only_orthogonal_balanced_designs_have_efficiency_one() -> None:
    every = FactorSpace((2, 3))
    full = np.array([(one, two) for one in range(2) for two in range(3)] * 2)
    assert d_efficiency(every, full) == pytest.approx(1.0)
    x_NP = every.model_matrix(full)
    assert np.linalg.slogdet(x_NP.T @ x_NP)[1] == pytest.approx(information_bound((2, 3), 12))
    assert d_efficiency(every, full[:-1]) < 1 and d_efficiency(every, full[:3]) == 0.0
    assert d_efficiency(FactorSpace((2,) * 11), (make_burman(12) + 1) // 2) == pytest.approx(1.0)


def test_transfers_slots_are_estimated_nearly_orthogonally() -> None:
    space = FactorSpace((7, 2, 2, 2, 3, 3, 5))
    levels_NF = make_d_optimal(space, 72, np.random.default_rng(0))
    x_NP = space.model_matrix(levels_NF)
    errors = dict.fromkeys(space.sizes, 0.0)
    for (factor, _), variance in zip(space.columns, np.diag(np.linalg.inv(x_NP.T @ x_NP))[1:]):
        errors[space.sizes[factor]] = max(errors[space.sizes[factor]], math.sqrt(variance))
    assert space.parameters == 18 and d_efficiency(space, levels_NF) > 0.98
    assert errors == pytest.approx({size: math.sqrt(2 * size / 72) for size in (2, 3, 5, 7)}, rel=0.06)


@st.composite
def spaces(draw: st.DrawFn) -> FactorSpace:
    """Factors with forbidden pairs of levels that are not the baseline's."""
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=6)))
    levels = [(factor, level) for factor, size in enumerate(sizes) for level in range(1, size)]
    pairs = [(one, other) for one in levels for other in levels if one[0] < other[0]]
    return FactorSpace(sizes, tuple(draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True))))


@settings(max_examples=12, deadline=None)
@given(spaces(), st.integers(0, 5), st.integers(0, 99))
def test_forbidden_pairs_are_avoided_and_effects_estimated(space: FactorSpace, more: int, seed: int) -> None:
    levels_NF = make_d_optimal(space, space.parameters + 2 + more, np.random.default_rng(seed))
    assert space.allows(levels_NF).all() and levels_NF.shape == (space.parameters + 2 + more, len(space.sizes))
    assert (levels_NF >= 0).all() and (levels_NF < space.sizes).all()
    assert d_efficiency(space, levels_NF) > 0.3


@settings(max_examples=12, deadline=None)
@given(spaces(), st.integers(0, 99))
def test_an_exchange_never_lowers_the_determinant(space: FactorSpace, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = np.array([space.draw_row(rng) for _ in range(space.parameters + 2)])
    better = optimize_rows(space, start)
    logs = [
        np.linalg.slogdet(x.T @ x + 1e-5 * np.eye(space.parameters))[1]
        for x in map(space.model_matrix, (start, better))
    ]
    assert logs[1] >= logs[0] - 1e-6


def test_rows_that_are_there_stay_and_count() -> None:
    space, rng = FactorSpace((2,) * 6), np.random.default_rng(3)
    half = (make_burman(8)[:, :6] + 1) // 2
    added = make_d_optimal(space, 8, rng, fixed_NF=half[:5])
    assert len(added) == 8 and d_efficiency(space, np.concatenate([half[:5], added])) > 0.95
    only = make_d_optimal(space, 8, rng, fixed_NF=half, most={2: {0}})
    assert not only[:, 2].any() and only[:, 1].any()


def test_a_row_is_drawn_by_search_where_few_are_allowed() -> None:
    # Every level but a factor's first asks for the next factor's: only the whole chain, or its end, may be there.
    chain = FactorSpace((2,) * 8, tuple(((place, 1), (place + 1, 0)) for place in range(7)))
    row = chain.draw_row(np.random.default_rng(0), [(0, 1)])
    assert row is not None and row.tolist() == [1] * 8
    closed = FactorSpace((2, 2), (((0, 1), (1, 1)), ((0, 1), (1, 0))))
    assert closed.draw_row(np.random.default_rng(0), [(0, 1)]) is None


@pytest.mark.parametrize(
    ("sizes", "forbidden"), [((), ()), ((2, 1), ()), ((2, 2), (((0, 1), (0, 0)),)), ((2, 2), (((0, 1), (1, 2)),))]
)
def test_factors_and_pairs_that_are_none_are_refused(sizes: tuple[int, ...], forbidden: tuple) -> None:
    with pytest.raises(PlumblineError):
        FactorSpace(sizes, forbidden)
