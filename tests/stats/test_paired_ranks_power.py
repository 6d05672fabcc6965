"""Paired differences, rank correlation, power and crossings against scipy, statsmodels and hand counts."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.power import TTestIndPower

from plumbline.core.errors import PlumblineError
from plumbline.stats.curve_crossing import first_at_or_below
from plumbline.stats.noise_floor import NoiseFloor, compute_verdicts
from plumbline.stats.paired_runs import compute_paired_difference
from plumbline.stats.power import chance_called, compute_resolvable_distance, power_of_gain, seeds_needed
from plumbline.stats.protocol_error import simulate_protocol
from plumbline.stats.rank_correlation import descending_ranks, signs_preserved, spearman


def test_the_paired_difference_agrees_with_scipy():
    a, b = pd.Series([1.0, 2.0, 4.0, math.nan]), pd.Series([0.5, 2.0, 3.0, 1.0])
    result = compute_paired_difference(a, b)
    test = scipy_stats.ttest_rel(a[:3], b[:3])
    assert (result.t, result.p) == (pytest.approx(test.statistic), pytest.approx(test.pvalue))
    assert (result.n, result.missing, result.wins, result.ties) == (3, 1, 2, 1)
    with pytest.raises(PlumblineError, match="same index"):
        compute_paired_difference(a, b.rename({0: 9}))


def test_spearman_of_the_seven_improvers():
    at_base = [0.4863, 0.4882, 0.4852, 0.4874, 0.4880, 0.4922, 0.4878]
    at_large = [0.5158, 0.5129, 0.5108, 0.5097, 0.5088, 0.5084, 0.5083]
    result = spearman(at_base, at_large)
    # The printed rho is -0.27 with p about 0.56.
    reference = scipy_stats.spearmanr(at_base, at_large)
    assert result.rho == pytest.approx(reference.statistic) and result.p_t == pytest.approx(reference.pvalue)
    exact = scipy_stats.permutation_test(
        (np.array(at_base),),
        lambda x: scipy_stats.spearmanr(x, at_large).statistic,
        permutation_type="pairings",
        n_resamples=200,
        rng=np.random.default_rng(0),
    )
    assert result.exact and result.p_permutation == pytest.approx(exact.pvalue, abs=0.12)


def test_exact_p_of_a_perfect_order_is_two_in_n_factorial():
    assert spearman(range(5), range(5)).p_permutation == pytest.approx(2 / math.factorial(5))
    many = spearman(range(20), range(20), resamples=999)
    assert not many.exact and many.p_permutation == pytest.approx(1 / 1000)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]).rho)
    with pytest.raises(PlumblineError, match="three pairs"):
        spearman([1, 2, math.nan], [1, 2, 3])


def test_ranks_and_signs():
    ranks = descending_ranks(pd.Series({"a": 3.0, "b": math.nan, "c": 5.0}))
    assert ranks["c"] == 1 and ranks["a"] == 2 and math.isnan(ranks["b"])
    before = pd.Series({"a": 1.0, "b": -1.0, "c": 2.0, "reference": 0.0, "diverged": 3.0})
    after = pd.Series({"a": 0.1, "b": 0.2, "c": 3.0, "reference": 0.0, "diverged": math.nan})
    assert signs_preserved(before, after) == (2, 3)


@pytest.mark.parametrize(("d", "n"), [(1.0, 17), (2.5, 4), (0.5, 64)])
def test_power_agrees_with_statsmodels(d, n):
    assert power_of_gain(d, 1.0, n) == pytest.approx(TTestIndPower().power(d, n, 0.05), abs=1e-6)
    assert seeds_needed(d, 1.0) == n


def test_seeds_for_half_a_point_over_the_printed_noise_floor():
    alone, among_19 = seeds_needed(0.005, 0.00208), seeds_needed(0.005, 0.00208, m=19)
    assert (alone, among_19) == (4, 8)
    with pytest.raises(PlumblineError, match="other than 0"):
        seeds_needed(0.0, 1.0)
    with pytest.raises(PlumblineError, match="sigma"):
        power_of_gain(1.0, 0.0, 3)


@pytest.mark.parametrize("n", [3, 6])
def test_the_protocol_calls_a_gain_as_often_as_estimated(n):
    gain = 1.3 * compute_resolvable_distance(1.0, n, m=19)
    share = simulate_protocol("prediction", "bonferroni", m=19, n=n, gains=(gain,)).power[gain]
    assert share == pytest.approx(chance_called(2.0 * gain, 2.0, n, m=19), abs=0.015)
    p = compute_verdicts(
        pd.Series([compute_resolvable_distance(1.0, n, m=19)]), NoiseFloor(mean=0.0, sigma=1.0, n=n), m=19
    )
    assert p["p_run_vs_seeds_bonferroni"].iloc[0] == pytest.approx(0.05)
    for wrong in ({"n": 1}, {"m": 0}, {"gain": -1.0}):
        with pytest.raises(PlumblineError, match=r"two seeds|at least 0"):
            chance_called(**{"gain": gain, "sigma": 1.0, "n": n, **wrong})


def test_crossing_interpolates_and_says_when_there_is_none():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 3.0, 1.0])
    assert first_at_or_below(x, y, 2.0) == 2.5
    assert first_at_or_below(x, y, 9.0) == 1.0 and math.isnan(first_at_or_below(x, y, 0.5))
    with pytest.raises(PlumblineError, match="increase"):
        first_at_or_below(x[::-1], y, 2.0)
