"""Tails and quantiles are those of scipy.stats to the last bit: tables made before these functions do not move."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from plumbline.stats import distributions as ours

X = np.concatenate([np.random.default_rng(0).normal(0, 8, 400), [0.0, 40.0, 1e300, np.inf, -np.inf, np.nan]])
P = 10 ** np.random.default_rng(1).uniform(-30, 0, 400) * (1 - 1e-9)


def test_the_normal_law() -> None:
    np.testing.assert_array_equal(ours.normal_sf(X), stats.norm.sf(X))
    np.testing.assert_array_equal(ours.normal_isf(P), stats.norm.isf(P))


@pytest.mark.parametrize("df", [0, 1, 2, 4.7, 30, 10_000])
def test_laws_with_degrees_of_freedom(df: float) -> None:
    np.testing.assert_array_equal(ours.t_sf(X, df), stats.t.sf(X, df))
    if not df:
        return
    np.testing.assert_array_equal(ours.t_isf(P, df), stats.t.isf(P, df))
    np.testing.assert_array_equal(ours.chi_squared_quantile(P, df), stats.chi2.ppf(P, df))
    for shift in (0.0, 0.3, 4.0, 20.0):
        upper = [ours.noncentral_t_sf(x, df, shift) for x in (0.4, 2.0, 5.0, 70.0)]
        np.testing.assert_array_equal(upper, stats.nct.sf([0.4, 2.0, 5.0, 70.0], df, shift))
        lower = [ours.noncentral_t_cdf(-x, df, shift) for x in (0.4, 2.0, 5.0)]
        np.testing.assert_array_equal(lower, stats.nct.cdf([-0.4, -2.0, -5.0], df, shift))
    assert ours.f_quantile(0.5, 3, df) == stats.f(3, df).median()
    assert [ours.f_sf(x, 3, df) for x in (0.2, 1.0, 9.0)] == list(stats.f.sf([0.2, 1.0, 9.0], 3, df))
