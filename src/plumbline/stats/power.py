"""How many seeds a gain of a given size needs before a two-sample t test can be expected to see it."""

from __future__ import annotations

import math

from scipy import stats

from plumbline.cli import PlumblineError

#: A gain that needs more seeds per arm than this is out of reach for pretraining; the search stops here.
MOST_SEEDS = 1_000_000


def power_of_gain(gain: float, sigma: float, n: int, *, alpha: float = 0.05) -> float:
    """Power of a two-sided two-sample t test, n seeds an arm, equal sigma: noncentral t, ncp = |d| sqrt(n/2).

    `gain` and `sigma` are in the same units; d = gain / sigma.

    Raises:
        PlumblineError: sigma not above 0, n below 2, or alpha outside (0, 1).
    """
    _check(sigma, alpha)
    if n < 2:
        raise PlumblineError(f"a t test needs at least two seeds an arm; got n = {n}")
    df, ncp = 2 * n - 2, abs(gain) / sigma * math.sqrt(n / 2)
    critical = stats.t.isf(alpha / 2, df)
    upper = stats.nct.sf(critical, df, ncp)
    # The other tail is negligible for a large ncp, where scipy's series for it can fail.
    lower = stats.nct.cdf(-critical, df, ncp) if ncp < 5 else 0.0
    return float(min(1.0, upper + lower))


def seeds_needed(gain: float, sigma: float, *, alpha: float = 0.05, power: float = 0.8, m: int = 1) -> int:
    """Smallest number of seeds per arm that sees `gain` with the wished power at level alpha / m.

    `m` is the number of methods tried: Bonferroni's price in seeds.

    Raises:
        PlumblineError: a gain of 0, sigma not above 0, power or alpha outside (0, 1), m below 1, or a gain
            so small that more than a million seeds would be needed.
    """
    _check(sigma, alpha)
    if gain == 0 or not 0 < power < 1 or m < 1:
        raise PlumblineError(f"need a gain other than 0, power in (0, 1), m >= 1; got {gain=}, {power=}, {m=}")
    high = 2
    while power_of_gain(gain, sigma, high, alpha=alpha / m) < power:
        high *= 2
        if high > MOST_SEEDS:
            raise PlumblineError(f"a gain of {gain} at sigma {sigma} needs more than {MOST_SEEDS:,} seeds an arm")
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        if power_of_gain(gain, sigma, middle, alpha=alpha / m) < power:
            low = middle + 1
        else:
            high = middle
    return high


def _check(sigma: float, alpha: float) -> None:
    if not sigma > 0 or not 0 < alpha < 1:
        raise PlumblineError(f"sigma must be above 0 and alpha in (0, 1); got sigma={sigma}, alpha={alpha}")
