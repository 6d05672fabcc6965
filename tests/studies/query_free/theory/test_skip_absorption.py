"""Skips and ReLU MLPs: sets that absorb are found and used, and none if there is none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.studies.query_free.theory import skip_absorption
from plumbline.studies.query_free.theory.skip_absorption import (
    absorb,
    checks,
    collinear,
    draw_weights,
    find_absorbing_set,
    find_nearest_set,
    product,
    residual,
    units_that_show,
    with_absorbing_set,
)


def points(width: int, seed: int, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng([seed, 9]).standard_normal((30, width)).astype(dtype)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int, int]:
    width = draw(st.integers(2, 12))
    return width, draw(st.integers(width, min(4 * width, width**2 + 8))), draw(st.integers(0, 10**6))


@given(shapes(), st.sampled_from([np.float64, np.float32]))
def test_a_planted_set_is_found_and_absorbs_the_skip(shape: tuple[int, int, int], dtype: type) -> None:
    width, hidden, seed = shape
    draw = np.random.default_rng(seed)
    planted = draw.choice(hidden, size=int(draw.integers(width, hidden + 1)), replace=False)
    w1, w2 = (weight.astype(dtype) for weight in draw_weights(width, hidden, seed))
    assume(np.linalg.cond(w1[planted]) < 100)
    w2 = with_absorbing_set(w1, w2, planted)
    assert w2.dtype == dtype
    residual_left = residual(w1, w2, *absorb(w1, w2, planted), points(width, seed, dtype))
    if dtype is np.float32:
        assert residual_left < 1e-3
        return
    absorbing_set = find_absorbing_set(w1, w2)
    assert absorbing_set is not None and len(absorbing_set) >= width
    assert residual_left < 1e-10
    assert residual(w1, w2, *absorb(w1, w2, absorbing_set), points(width, seed)) < 1e-7


@given(shapes())
def test_random_weights_have_no_set(shape: tuple[int, int, int]) -> None:
    width, hidden, seed = shape
    assert find_absorbing_set(*draw_weights(width, hidden, seed)) is None


@pytest.mark.parametrize("width, hidden", [(2, 2), (2, 5), (2, 8), (3, 7), (3, 12)])
@pytest.mark.parametrize("plant", [False, True])
def test_the_search_agrees_with_going_through_every_set(width: int, hidden: int, plant: bool) -> None:
    w1, w2 = draw_weights(width, hidden, 11)
    if plant:
        w2 = with_absorbing_set(w1, w2, range(hidden - width, hidden))
    sets = [units for size in range(hidden + 1) for units in itertools.combinations(range(hidden), size)]
    off = [np.linalg.norm(product(w1, w2, units) + np.eye(width)) / np.sqrt(width) for units in sets]
    meeting = [units for units, distance in zip(sets, off) if distance < 1e-9]
    absorbing_set = find_absorbing_set(w1, w2)
    assert (absorbing_set in meeting) if meeting else absorbing_set is None
    assert bool(meeting) == plant
    units, distance = find_nearest_set(w1, w2)
    assert distance == pytest.approx(min(off), abs=1e-12) and set(units) == set(sets[int(np.argmin(off))])


def test_what_a_set_misses_is_the_residual() -> None:
    """V2 ReLU(V1 x) - W2 ReLU(W1 x) - x = -(W2[:, J] W1[J, :] + I) x, whatever J is."""
    w1, w2 = draw_weights(3, 12, 5)
    x_Nh = points(3, 5)
    for units in [(), (0,), (1, 4, 7), tuple(range(12))]:
        v1, v2 = absorb(w1, w2, units)
        off = np.maximum(x_Nh @ v1.T, 0) @ v2.T - np.maximum(x_Nh @ w1.T, 0) @ w2.T - x_Nh
        np.testing.assert_allclose(off, -x_Nh @ (product(w1, w2, units) + np.eye(3)).T, atol=1e-12)


def test_collinear_rows_absorb_a_skip_without_a_set() -> None:
    """The premise on W1 is needed: the theorem's second half is wrong without it."""
    w1, w2, v1, v2 = collinear(4, 0)
    assert residual(w1, w2, v1, v2, points(4, 0)) < 1e-10
    assert find_absorbing_set(w1, w2) is None and find_nearest_set(w1, w2)[1] > 0.1


def test_dead_columns_absorb_a_skip_without_a_set() -> None:
    """The premise on W2, likewise: units that write nothing can be given anything to do."""
    w1, w2 = draw_weights(3, 12, 4)
    w2[:, :6] = 0
    v1, v2 = w1.copy(), w2.copy()
    v1[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    v2[:, :6] = v1[:6].T
    assert residual(w1, w2, v1, v2, points(3, 4)) < 1e-12
    assert find_absorbing_set(w1, w2) is None


def test_the_set_shows_in_weights_that_absorb() -> None:
    w1, _ = draw_weights(3, 9, 1)
    order = np.random.default_rng(0).permutation(9)
    v1 = absorb(w1, w1.T, (2, 3, 8))[0][order] * 3
    assert units_that_show(w1, v1) == (2, 3, 8)
    v1[0] += 0.1
    with pytest.raises(PlumblineError, match=r"scaled.*another"):
        units_that_show(w1, v1)


def test_what_cannot_be_done_is_refused() -> None:
    w1, w2 = draw_weights(2, 40, 0)
    with pytest.raises(PlumblineError, match="36 of 40 units open"):
        find_absorbing_set(w1, w2)
    with pytest.raises(PlumblineError, match=r"2\^40 sets"):
        find_nearest_set(w1, w2)
    with pytest.raises(PlumblineError, match="rank 1"):
        with_absorbing_set(w1, w2, [3])


def test_the_rows_of_the_table_hold_and_each_premise_is_needed() -> None:
    check_by_id = {check.id: check for check in checks(widths=(2, 4, 7), seeds=range(2))}
    assert set(check_by_id) == {"thm_8_4_if", "thm_8_4_only_if", "cor_8_4_1_false"}
    assert all(check.holds for check in check_by_id.values())
    assert [len(check.broken) for check in check_by_id.values()] == [2, 1, 1]


def test_a_search_that_misses_sets_makes_the_row_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skip_absorption, "find_absorbing_set", lambda w1, w2: None)
    assert not any(check.holds for check in checks(widths=(2, 4), seeds=range(2)) if check.id.startswith("thm_8_4"))
