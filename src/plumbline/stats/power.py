"""Computes how many seeds a gain of a given size needs before a t test can be expected to see it.

Source: ours. The transfer study gives a test and a number of seeds (sections 3.3 and 6) and no power; these are the
textbook's formulas, by noncentral t.
"""

from __future__ import annotations

import math

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import noncentral_t_cdf, noncentral_t_sf, t_isf

#: A gain that needs more seeds per arm than this is out of reach for pretraining; the search stops here.
MOST_SEEDS = 1_000_000


def power_of_gain(gain: float, sigma: float, n: int, *, alpha: float = 0.05, reference: int = 0) -> float:
    """Power of a two-sided two-sample t test, equal sigma: noncentral t, ncp = |d| / sqrt(1/n + 1/k).

    `gain` and `sigma` are in the same units; d = gain / sigma. One arm has n seeds; the other k, as many or the
    `reference` seeds that it has already, where these are more.

    Raises:
        PlumblineError: sigma not above 0, n below 2, or alpha outside (0, 1).
    """
    _require_valid(sigma, alpha)
    if n < 2:
        raise PlumblineError(f"a t test needs at least two seeds an arm; got n = {n}")
    k = max(n, reference)
    df, ncp = n + k - 2, abs(gain) / sigma / math.sqrt(1 / n + 1 / k)
    critical = float(t_isf(alpha / 2, df))
    upper = noncentral_t_sf(critical, df, ncp)
    # The other tail is negligible for a large ncp, where scipy's series for it can fail.
    lower = noncentral_t_cdf(-critical, df, ncp) if ncp < 5 else 0.0
    return min(1.0, upper + lower)


def seeds_needed(
    gain: float, sigma: float, *, alpha: float = 0.05, power: float = 0.8, m: int = 1, reference: int = 0
) -> int:
    """Smallest number of seeds per arm that sees `gain` with the wished power at level alpha / m.

    `m` is the number of methods tried: Bonferroni's price in seeds. `reference`: seeds that one arm has already.

    Raises:
        PlumblineError: a gain of 0, sigma not above 0, power or alpha outside (0, 1), m below 1, or a gain
            so small that more than a million seeds would be needed.
    """
    _require_valid(sigma, alpha)
    if gain == 0 or not 0 < power < 1 or m < 1:
        raise PlumblineError(f"need a gain other than 0, power in (0, 1), m >= 1; got {gain=}, {power=}, {m=}")
    high = 2
    while power_of_gain(gain, sigma, high, alpha=alpha / m, reference=reference) < power:
        high *= 2
        if high > MOST_SEEDS:
            raise PlumblineError(f"a gain of {gain} at sigma {sigma} needs more than {MOST_SEEDS:,} seeds an arm")
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        if power_of_gain(gain, sigma, middle, alpha=alpha / m, reference=reference) < power:
            low = middle + 1
        else:
            high = middle
    return high


def compute_resolvable_distance(sigma: float, n: int, *, m: int = 1, alpha: float = 0.05) -> float:
    """How far one run must lie from the mean of `n` seeds for `NoiseFloor.prediction` to be significant at alpha / m.

    In the units of `sigma`, the sample standard deviation of those seeds.

    Raises:
        PlumblineError: sigma not above 0, alpha outside (0, 1), n below 2 or m below 1.
    """
    return sigma * _critical_t(sigma, n, m, alpha) * math.sqrt(1 + 1 / n)


def chance_called(gain: float, sigma: float, n: int, *, m: int = 1, alpha: float = 0.05) -> float:
    """The chance that one run with the true gain `gain` over `n` seeds is called better.

    Args:
        gain: at least 0, in the units of `sigma`, the true spread of one run.

    Raises:
        PlumblineError: as `compute_resolvable_distance`, or a gain below 0.
    """
    if not gain >= 0:
        raise PlumblineError(f"a gain is at least 0; got {gain}")
    critical = _critical_t(sigma, n, m, alpha)
    return noncentral_t_sf(critical, n - 1, gain / (sigma * math.sqrt(1 + 1 / n)))


def _critical_t(sigma: float, n: int, m: int, alpha: float) -> float:
    _require_valid(sigma, alpha)
    if n < 2 or m < 1:
        raise PlumblineError(f"need at least two seeds and one method; got {n=}, {m=}")
    return float(t_isf(alpha / m / 2, n - 1))


def _require_valid(sigma: float, alpha: float) -> None:
    if not sigma > 0 or not 0 < alpha < 1:
        raise PlumblineError(f"sigma must be above 0 and alpha in (0, 1); got sigma={sigma}, alpha={alpha}")
