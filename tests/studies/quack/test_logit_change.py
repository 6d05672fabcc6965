"""Lemma 1: the bound is kept, met, and independent of the weights; without QuacK's rates it is not."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.studies.quack.logit_change import (
    Directions,
    HeadSizes,
    HeadUpdate,
    LemmaRow,
    Norm,
    Weights,
    bound,
    draw_head,
    find_worst_update,
    rates,
    rows,
    spectral_norm,
)

SIZES = HeadSizes(width=48, head_width=8, init_std=0.02, rate=3e-3, tau=0.5, tokens=12)
ALL = rows(SIZES)


def quack(now: HeadUpdate, start: HeadUpdate, kind: Norm) -> tuple[float, float]:
    return rates("quack", now, start, rate=SIZES.rate, tau=SIZES.tau, kind=kind)


def largest(values: np.ndarray) -> float:
    return float(np.abs(values).max())


@st.composite
def steps(draw: st.DrawFn) -> HeadUpdate:
    head_width = draw(st.integers(1, 12))
    sizes = HeadSizes(
        width=head_width * draw(st.integers(1, 6)), head_width=head_width, init_std=0.3, rate=1.0, tau=1.0, tokens=5
    )
    weights, directions = draw(st.sampled_from(get_args(Weights))), draw(st.sampled_from(get_args(Directions)))
    return draw_head(sizes, weights, directions, draw(st.integers(0, 10**6)))


@given(steps(), st.floats(0, 2), st.floats(0, 2))
def test_first_and_second_order_are_the_whole_change(step: HeadUpdate, query_rate: float, key_rate: float) -> None:
    parts = step.first_order(query_rate, key_rate) + step.second_order(query_rate, key_rate)
    exact = step.exact_change(query_rate, key_rate)
    np.testing.assert_allclose(exact, parts, atol=1e-10 * max(1.0, largest(parts), largest(step.logits)))


def test_logits_and_their_change_are_those_of_the_weights() -> None:
    step = draw_head(SIZES, "drawn", "muon", 0)

    def logits(query_WD: np.ndarray, key_WD: np.ndarray) -> np.ndarray:
        return (step.x_TD @ query_WD.T) @ (step.y_SD @ key_WD.T).T / np.sqrt(8)

    np.testing.assert_allclose(step.logits, logits(step.query_WD, step.key_WD), atol=1e-12)
    moved = logits(step.query_WD - 0.1 * step.query_update_WD, step.key_WD - 0.2 * step.key_update_WD)
    np.testing.assert_allclose(step.exact_change(0.1, 0.2), moved - step.logits, atol=1e-12)
    # The lemma's W, with weights as torch stores them; with d_model x d_head it could not be applied to x.
    bilinear_DD = step.query_WD.T @ step.key_WD / np.sqrt(8)
    np.testing.assert_allclose(step.x_TD @ bilinear_DD @ step.y_SD.T, step.logits, atol=1e-12)
    assert (step.query_WD @ step.key_WD.T).shape != (step.x_TD.shape[1],) * 2


@given(steps(), st.sampled_from(get_args(Norm)), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_quacks_rates_keep_the_bound(start: HeadUpdate, kind: Norm, by_query: float, by_key: float) -> None:
    now = start.multiply_weights(by_query, by_key)
    at = quack(now, start, kind)
    allowed = bound(start, SIZES.tau * SIZES.rate, kind)
    assert largest(now.first_order(*at)) <= allowed * (1 + 1e-9)
    left_out = at[0] * at[1] * now.size**2 * now.reach
    assert largest(now.second_order(*at)) <= left_out * (1 + 1e-9)
    rounding = 1e-12 * largest(now.logits)  # the change is a difference of logits
    assert largest(now.exact_change(*at)) <= (allowed + left_out) * (1 + 1e-9) + rounding


@given(steps(), st.sampled_from(get_args(Norm)), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_quacks_first_order_knows_no_scale(start: HeadUpdate, kind: Norm, by_query: float, by_key: float) -> None:
    now = start.multiply_weights(by_query, by_key)
    np.testing.assert_allclose(
        now.first_order(*quack(now, start, kind)), start.first_order(*quack(start, start, kind)), rtol=1e-6, atol=1e-12
    )


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(get_args(Norm)), scale=st.floats(0.01, 100))
def test_the_worst_case_meets_the_bound(seed: int, kind: Norm, scale: float) -> None:
    """For any weights under the spectral norm, under Frobenius' for those of rank one; then nothing tighter is true."""
    for weights in get_args(Weights):
        start = draw_head(SIZES, weights, "worst", seed)
        now = start.multiply_weights(scale, scale)
        share = largest(now.first_order(*quack(now, start, kind))) / bound(start, SIZES.tau * SIZES.rate, kind)
        if kind == "spectral" or weights == "rank one":
            assert share == pytest.approx(1, rel=1e-6)
        else:
            assert share < 0.9


@given(seed=st.integers(0, 10**6))
def test_no_other_direction_or_input_moves_a_logit_further(seed: int) -> None:
    draw = np.random.default_rng(seed)
    query_WD, key_WD = (draw.standard_normal((4, 10)) for _ in range(2))
    most = largest(find_worst_update(query_WD, key_WD, length=1.0).first_order(0.3, 0.7))
    other = draw_head(HeadSizes(width=10, head_width=4, init_std=1, rate=1, tau=1), "drawn", "random", seed)
    length = np.sqrt(10)
    tried = HeadUpdate(
        query_WD=query_WD,
        key_WD=key_WD,
        query_update_WD=other.query_update_WD,
        key_update_WD=other.key_update_WD,
        x_TD=other.x_TD / length,
        y_SD=other.y_SD / length,
    )
    assert largest(tried.first_order(0.3, 0.7)) <= most * (1 + 1e-9)


def choose_rows(**values: Any) -> list[LemmaRow]:
    return [row for row in ALL if all(getattr(row, name) == value for name, value in values.items())]


def test_the_table_has_every_case_at_every_scale() -> None:
    assert len(ALL) == 2 * 3 * 2 * 3 * 9
    assert all(row.within and row.slack >= 1 - 1e-9 for row in choose_rows(rates="quack"))
    for row in choose_rows(rates="quack", directions="worst", kind="spectral"):
        assert row.share == pytest.approx(1, rel=1e-9)


def test_with_fixed_rate_bound_is_broken_once_weights_have_grown() -> None:
    for weights in get_args(Weights):
        fixed = choose_rows(rates="fixed", directions="worst", kind="spectral", weights=weights)
        assert [row.share for row in fixed] == pytest.approx([row.scale for row in fixed], rel=1e-9)
        assert [row.within for row in fixed] == [row.scale <= 1 for row in fixed]
        # Without tau the rate is twice as large here, and the bound is broken at half the scale.
        default = choose_rows(rates="default", directions="worst", kind="spectral", weights=weights)
        assert [row.within for row in default] == [row.scale <= 0.5 for row in default]


def test_the_second_order_matters_where_weights_are_small() -> None:
    quacks = choose_rows(rates="quack", directions="worst", kind="spectral", weights="rank one")
    shares = [row.second_order / row.first_order for row in quacks]
    assert all(small == pytest.approx(4 * large) for small, large in itertools.pairwise(shares))
    fixed = choose_rows(rates="fixed", directions="worst", kind="spectral", weights="rank one")
    assert len({f"{row.second_order:.9g}" for row in fixed}) == 1
    assert all(row.exact == pytest.approx(row.first_order + row.second_order) for row in quacks + fixed)


def test_updates_have_norm_one_and_muons_are_near_orthogonal() -> None:
    for directions in get_args(Directions):
        step = draw_head(SIZES, "drawn", directions, 2)
        assert step.size == pytest.approx(1, abs=1e-9)
    values = np.linalg.svd(draw_head(SIZES, "drawn", "muon", 2).query_update_WD, compute_uv=False)
    assert values.min() > 0.5
    assert spectral_norm(np.diag([3.0, 4.0])) == pytest.approx(4.0)


def test_rates_that_go_by_their_own_norm_break_the_bound() -> None:
    """The formula is not a formality: with query and key norms exchanged, one of two sizes of weights is too fast."""
    start = draw_head(SIZES, "drawn", "worst", 3)
    now = start.multiply_weights(100.0, 0.01)
    query_rate, key_rate = quack(now, start, "spectral")
    assert largest(now.first_order(key_rate, query_rate)) > 10 * bound(start, SIZES.tau * SIZES.rate, "spectral")
