"""The simulated power of stated tests against closed forms, and against chance where nothing is there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.sample_spread import bound_sigma
from plumbline.stats.stated_power import (
    compute_sign_power,
    find_least_gain,
    simulate_order_test,
    simulate_t_test,
)

#: Three standard errors of a share of 20,000 worlds, at most.
NEAR = 3 * 0.5 / math.sqrt(20_000)


@pytest.mark.parametrize(("gain", "n", "arms"), [(0.0, 4, 2), (0.5, 6, 2), (1.0, 4, 4), (2.0, 3, 2)])
def test_a_t_test_sees_what_noncentral_t_says(gain: float, n: int, arms: int) -> None:
    df, shift = arms * (n - 1), gain / math.sqrt(2 / n)
    exact = stats.nct.sf(stats.t.isf(0.025, df), df, shift) if gain else 0.025
    assert simulate_t_test(3 * gain, 3.0, n, (1, -1), arms=arms, level=0.025) == pytest.approx(exact, abs=NEAR)


def test_a_paired_test_is_scipys_on_simulated_pairs() -> None:
    draws = np.random.default_rng(5).normal(0.8, 1.0, (4000, 8))
    share = np.mean(stats.ttest_1samp(draws, 0, axis=1, alternative="greater").pvalue <= 0.025)
    assert simulate_t_test(0.8, 1.0, 8, (1,), arms=1, level=0.025) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize(("n", "weights", "arms"), [(6, (1.0,), 1), (4, (1.0, -1.0), 2), (5, (1, -1, -1, 1), 4)])
def test_the_least_gain_is_seen_in_80_percent(n: int, weights: tuple[float, ...], arms: int) -> None:
    gain = find_least_gain(n, weights, arms=arms, level=0.025)
    assert simulate_t_test(gain, 1.0, n, weights, arms=arms, level=0.025) == pytest.approx(0.8, abs=NEAR)


@pytest.mark.parametrize("n", [4, 6, 8, 12])
def test_a_sign_test_is_scipys(n: int) -> None:
    wins = [k for k in range(n + 1) if stats.binomtest(k, n, 0.5, alternative="greater").pvalue <= 0.025]
    expected = sum(stats.binom.pmf(k, n, 0.9) for k in wins)
    assert compute_sign_power(0.9, n, 0.025) == pytest.approx(expected)
    assert compute_sign_power(0.5, n, 0.025) <= 0.025


def test_unrelated_orders_agree_as_often_as_the_level_says() -> None:
    share = simulate_order_test(0.0, 1.0, 1.0, (4, 4), methods=12, level=0.05)
    assert share == pytest.approx(0.05, abs=0.02)


def test_an_order_is_seen_less_the_noisier_it_is() -> None:
    shares = [simulate_order_test(0.8, 1.0, sigma, (3, 4), methods=12, level=0.025) for sigma in (0.01, 1.0, 4.0)]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0.8 > shares[2]


def test_the_interval_of_sigma_is_chi_squareds() -> None:
    low, high = bound_sigma(2.0, 4)
    assert (4 * 4 / low**2, 4 * 4 / high**2) == pytest.approx((stats.chi2.isf(0.05, 4), stats.chi2.isf(0.95, 4)))


@pytest.mark.parametrize(("sigma", "n"), [(0.0, 4), (1.0, 1)])
def test_what_has_no_noise_or_no_second_seed_is_refused(sigma: float, n: int) -> None:
    with pytest.raises(PlumblineError, match=f"n={n}, sigma={sigma}"):
        simulate_t_test(1.0, sigma, n, (1,), arms=1, level=0.025)
