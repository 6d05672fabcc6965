"""Effects of factors next to statsmodels, published examples, and worlds of known truth."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plumbline.stats.d_optimal_design import FactorSpace
from plumbline.stats.factor_effects import (
    fit_effects,
    p_of_crashes,
    p_of_gains,
    pool_residuals,
    trend_p,
)
from plumbline.stats.fresh_runs import compare_means
from plumbline.stats.half_normal import compute_lenth_margins, half_normal_quantiles
from plumbline.stats.interactions import estimate_interactions, make_interactions
from plumbline.stats.two_level_designs import make_burman

SPACE = FactorSpace((3, 2, 2, 4))
ROWS = np.random.default_rng(5).integers(0, SPACE.sizes, (30, 4))
VALUES = np.random.default_rng(6).normal(3.0, 0.2, (4, 30))


def test_effects_and_errors_are_those_of_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api")
    x_NP = SPACE.model_matrix(ROWS)
    fit = fit_effects(x_NP, VALUES)
    for world, values_N in enumerate(VALUES):
        expected = sm.OLS(values_N, x_NP).fit()
        sigma = math.sqrt(fit.squares_W[world] / fit.df)
        np.testing.assert_allclose(fit.effects_WP[world], expected.params, rtol=1e-9)
        np.testing.assert_allclose(fit.unit_errors_P * sigma, expected.bse, rtol=1e-9)
        np.testing.assert_allclose(fit.residuals_WN[world], expected.resid, atol=1e-12)
        p_P = p_of_gains(fit.effects_WP[world], fit.unit_errors_P * sigma, fit.df)
        np.testing.assert_allclose(2 * np.minimum(p_P, 1 - p_P), expected.pvalues, rtol=1e-8)
        timed = sm.OLS(values_N, np.column_stack([x_NP, np.arange(30)])).fit()
        own = fit_effects(x_NP, values_N)
        assert trend_p(x_NP, own, range(30)) == pytest.approx(timed.pvalues[-1], rel=1e-8)


def test_an_interaction_is_tested_as_one_more_column() -> None:
    sm = pytest.importorskip("statsmodels.api")
    x_NP, values_N = SPACE.model_matrix(ROWS), VALUES[0]
    fit, columns = fit_effects(x_NP, values_N), make_interactions(SPACE, ROWS)
    tests = estimate_interactions(columns, fit.residuals_WN[0], fit.df)
    assert len(tests.groups) > 10
    for place, group in enumerate(tests.groups):
        first, second = columns.pairs[group[0]]
        expected = sm.OLS(values_N, np.column_stack([x_NP, x_NP[:, 1 + first] * x_NP[:, 1 + second]])).fit()
        got = (tests.gains[place], tests.errors[place], tests.p_values[place])
        assert got == pytest.approx((expected.params[-1], expected.bse[-1], expected.pvalues[-1]), rel=1e-6)


def test_an_orthogonal_effect_is_the_difference_of_two_halves() -> None:
    levels_NF, values_N = (make_burman(12) + 1) // 2, np.random.default_rng(1).normal(size=12)
    fit = fit_effects(FactorSpace((2,) * 11).model_matrix(levels_NF), values_N)
    means = [
        values_N[levels_NF[:, place] == 1].mean() - values_N[levels_NF[:, place] == 0].mean() for place in range(11)
    ]
    np.testing.assert_allclose(fit.effects_WP[0, 1:], means, rtol=1e-10)
    np.testing.assert_allclose(fit.unit_errors_P[1:], 2 / math.sqrt(12), rtol=1e-10)
    assert fit.df == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 29), max_size=9, unique=True), st.integers(0, 3))
def test_lost_runs_leave_the_model_and_shift_no_effect(lost: list[int], world: int) -> None:
    there = [place for place in range(30) if place not in lost]
    x_NP = SPACE.model_matrix(ROWS)
    truth = np.arange(x_NP.shape[1], dtype=float)
    fit = fit_effects(x_NP[there], x_NP[there] @ truth)
    known = ~np.isnan(fit.unit_errors_P)
    np.testing.assert_allclose(fit.effects_WP[0, known], truth[known], atol=1e-8)
    assert known.sum() >= x_NP.shape[1] - len(lost) and fit.df >= 30 - len(lost) - x_NP.shape[1]


def test_what_runs_do_not_tell_apart_is_nan_and_the_rest_stands() -> None:
    levels_NF = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]])  # the first two are never apart
    space = FactorSpace((2, 2, 2))
    fit = fit_effects(space.model_matrix(levels_NF), np.array([1.0, 4.0, 3.0, 6.0, 1.0]))
    assert np.isnan(fit.effects_WP[0, 1:3]).all() and np.isnan(fit.unit_errors_P[1:3]).all()
    assert fit.effects_WP[0, [0, 3]] == pytest.approx([1.0, 2.0]) and fit.df == 2


def test_large_values_lose_no_digits() -> None:
    x_NP = SPACE.model_matrix(ROWS)
    near, far = fit_effects(x_NP, VALUES), fit_effects(x_NP, VALUES + 1e8)
    np.testing.assert_allclose(near.effects_WP[:, 1:], far.effects_WP[:, 1:], atol=1e-6)


def test_past_runs_are_pooled_unless_residuals_spread_much_wider() -> None:
    squares_W, past_WM = np.array([3.0, 300.0]), np.array([[1.0, 2.0, 3.0, 4.0, 5.0]] * 2)
    pooled = pool_residuals(squares_W, 3, past_WM)
    assert pooled.with_past_W.tolist() == [True, False] and pooled.df_W.tolist() == [7, 3]
    assert pooled.sigma_W == pytest.approx([math.sqrt((3 + 10) / 7), math.sqrt(100)])
    alone = pool_residuals(np.zeros(2), 0, past_WM)
    assert alone.df_W.tolist() == [4, 4] and alone.sigma_W == pytest.approx([math.sqrt(2.5)] * 2)
    assert np.isnan(pool_residuals(np.zeros(1), 0, np.ones((1, 1))).sigma_W).all()
    assert not pool_residuals(np.ones(1), 3, np.ones((1, 5))).with_past_W.any()  # a baseline that does not spread


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_p_values_are_uniform_where_nothing_gains(truth: float) -> None:
    levels_NF, rng = (make_burman(16)[:, :12] + 1) // 2, np.random.default_rng(8)
    space = FactorSpace((2,) * 12)
    x_NP = space.model_matrix(levels_NF)
    values_WN = truth * x_NP[:, 1] + rng.standard_normal((4000, 16))
    fit = fit_effects(x_NP, values_WN)
    pooled = pool_residuals(fit.squares_W, fit.df, rng.standard_normal((4000, 5)))
    p_WQ = p_of_gains(fit.effects_WP[:, 1:], pooled.sigma_W[:, None] * fit.unit_errors_P[1:], pooled.df_W[:, None])
    assert stats.kstest(p_WQ[:, 1], "uniform").pvalue > 1e-3
    assert (
        (p_WQ[:, 0] < 0.05).mean() == pytest.approx(0.05, abs=0.015) if not truth else (p_WQ[:, 0] < 0.05).mean() > 0.4
    )


def test_without_any_spread_the_sign_decides() -> None:
    gains, errors = np.array([0.1, -0.1, 0.0, math.nan]), np.array([0.0, 0.0, 0.0, 1.0])
    p = p_of_gains(gains, errors, 4)
    assert p[:3].tolist() == [0.0, 1.0, 0.5] and math.isnan(p[3])


def test_lenth_finds_the_margins_of_a_published_example() -> None:
    # The filtration rates of Montgomery (Design and Analysis of Experiments, example 6.2), his margins by Lenth.
    rates = np.array([45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96])
    signs = np.array([[1 if run >> place & 1 else -1 for place in range(4)] for run in range(16)])
    effects = {
        "".join("ABCD"[place] for place in places): float(rates @ signs[:, places].prod(axis=1) / 8)
        for size in range(1, 5)
        for places in map(list, combinations(range(4), size))
    }
    margins = compute_lenth_margins(list(effects.values()))
    assert (effects["A"], effects["AC"], effects["AD"], effects["D"]) == (21.625, -18.125, 16.625, 14.625)
    found = (margins.pseudo_error, margins.margin, margins.simultaneous)
    assert found == pytest.approx((2.625, 6.748, 13.699), abs=5e-4)
    assert {name for name, effect in effects.items() if abs(effect) > margins.simultaneous} == {"A", "AC", "AD", "D"}


def test_lenth_takes_what_is_there_and_no_more() -> None:
    assert compute_lenth_margins([1.0, math.nan, -2.0]) == compute_lenth_margins([1.0, 2.0])
    assert math.isnan(compute_lenth_margins([math.nan]).margin)
    assert compute_lenth_margins([0.0, 0.0, 5.0]).pseudo_error == 0.0


def test_half_normal_quantiles_are_those_of_absolute_normals() -> None:
    expected = stats.halfnorm.ppf((np.arange(1, 16) - 0.5) / 15)
    np.testing.assert_allclose(half_normal_quantiles(15), expected, rtol=1e-12)


@pytest.mark.parametrize("table", [(8, 8, 8, 16), (3, 5, 4, 12), (0, 4, 2, 9), (6, 32, 9, 64)])
def test_p_of_crashes_is_fishers(table: tuple[int, int, int, int]) -> None:
    hits, own, crashed, runs = table
    counts = [[hits, own - hits], [crashed - hits, runs - own - crashed + hits]]
    assert p_of_crashes(*table) == pytest.approx(stats.fisher_exact(counts, alternative="greater").pvalue, rel=1e-9)


def test_aliases_say_what_an_interaction_does_to_effects() -> None:
    space, levels_NF = FactorSpace((2,) * 7), (make_burman(8) + 1) // 2
    columns, x_NP = make_interactions(space, levels_NF), space.model_matrix(levels_NF)
    for place, (first, second) in enumerate(columns.pairs):
        both = x_NP[:, 1 + first] * x_NP[:, 1 + second]
        shift = fit_effects(x_NP, both).effects_WP[0, 1:]  # the whole of what a gain of both does to the effects
        shift[[first, second]] -= 0.5  # of which half belongs to its own two
        np.testing.assert_allclose(shift, columns.alias_PI[1:, place], atol=1e-12)
        assert np.abs(shift).max() == pytest.approx(0.5)  # eight runs: on one other effect, in full
    assert not columns.is_estimable.any() and columns.group_equal() == []


def test_interactions_of_the_same_runs_are_one_group() -> None:
    half = make_burman(8)[:, :6]
    levels_NF = (np.concatenate([half, -half]) + 1) // 2
    columns = make_interactions(FactorSpace((2,) * 6), levels_NF)
    groups = columns.group_equal()
    assert sum(map(len, groups)) == len(columns.pairs) == 15 and len(groups) == 7
    for group in groups:
        for place in group[1:]:
            ratio = columns.z_NI[:, place] / columns.z_NI[:, group[0]]
            assert (ratio == ratio[0]).all() and abs(ratio[0]) == 1


def test_difference_of_means_is_students() -> None:
    base, own = [3.1, 2.9, 3.3, 3.0], [2.7, 2.8, 2.5]
    expected = stats.ttest_ind(base, own, alternative="greater")
    lower = compare_means(base, own, higher=False)
    assert lower.p == pytest.approx(expected.pvalue) and lower.df == 5
    both = stats.ttest_ind(base, own).confidence_interval(0.9)
    assert lower.interval(0.9) == pytest.approx((both.low, both.high))
    assert compare_means(base, own, higher=True).gain == -lower.gain
    assert [compare_means([1.0, 1.0], [value] * 2, higher=True).p for value in (2.0, 0.0, 1.0)] == [0.0, 1.0, 0.5]
