"""Computes what a comparison of so many seeds can find: the smallest gain, and how many seeds another gain needs.

Gains are in the units of sigma. The deciding test is one-sided at level alpha; what counts as found is a method called
better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from scipy.special import chdtr, nctdtr, ndtr, ndtri, stdtr, stdtrit

from plumbline.stats.sample_spread import bound_sigma

#: Here scipy's series for the noncentral t ends, and the numerator hardly varies: t is this over the estimated sigma.
FAR = 1000.0
#: From so many degrees of freedom on, sigma is as good as known.
KNOWN = 1e5
#: More seeds than this are not counted.
MOST = 1_000_000

#: What a comparison compares: two sets of runs, differences of pairs, or one set of runs with a fixed value.
Plan = Literal["two", "pairs", "goal"]


def upper_tail(t: float, freedom: float) -> float:
    """Compute the chance of a t at least this large: the one-sided p. Sigma is known where `freedom` is infinite."""
    return float(ndtr(-t)) if math.isinf(freedom) else float(stdtr(freedom, -t))


@dataclass(frozen=True, slots=True)
class ComparisonDesign:
    """A comparison before its numbers are known: the standard error of a difference in units of sigma, and sigma's
    freedom.

    Attributes:
        error: sqrt(1/n + 1/n') of two sets of seeds, sqrt(1/n) of n differences.
        freedom: degrees of freedom of sigma; infinite if it is known.
        alpha: level of the one-sided test, after correction.
    """

    error: float
    freedom: float
    alpha: float

    @property
    def critical(self) -> float:
        """The critical value: what t has to reach."""
        return _critical(self.freedom, self.alpha)

    def power(self, gain: float) -> float:
        """Compute the chance that a method with this gain (in units of sigma) is called better."""
        shift = gain / self.error
        if self.freedom >= KNOWN:
            return float(ndtr(shift - self.critical))
        if shift > FAR:
            return float(chdtr(self.freedom, self.freedom * (shift / self.critical) ** 2))
        return 1 - float(nctdtr(self.freedom, shift, self.critical))

    def find_smallest_gain(self, power: float) -> float:
        """Compute the smallest gain (in units of sigma) that is found with the chance `power`."""
        return _find_smallest_gain(self, power)


@lru_cache(maxsize=1024)  # the methods of a table share few designs
def _critical(freedom: float, alpha: float) -> float:
    return -float(ndtri(alpha) if math.isinf(freedom) else stdtrit(freedom, alpha))


@lru_cache(maxsize=1024)
def _find_smallest_gain(design: ComparisonDesign, power: float) -> float:
    low, high = 0.0, design.critical * design.error
    while design.power(high) < power:
        low, high = high, 2 * high
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if design.power(middle) >= power else (middle, high)
    return high


def count_seeds(gain: float, sigma: float, design: ComparisonDesign, power: float, *, plan: Plan = "two") -> int | None:
    """Compute how many seeds of both the method and the baseline find a gain with the chance `power`.

    None above a million, or of no gain. `gain` and `sigma` are in units of the metric. Of pairs it is their number, and
    sigma that of a difference; against a fixed goal it is the method's.
    """
    if not gain > 0:
        return None
    sigma_known = math.isinf(design.freedom)

    def compute_power(n: int) -> float:
        freedom = math.inf if sigma_known else (2 * n - 2 if plan == "two" else n - 1)
        if freedom == 0:
            return 0.0
        return ComparisonDesign(math.sqrt((2 if plan == "two" else 1) / n), freedom, design.alpha).power(gain / sigma)

    low, high = (0, 1) if sigma_known else (1, 2)
    while compute_power(high) < power:
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_power(middle) >= power else (middle, high)
    return high


def compute_sigma_interval(sigma: float, freedom: float) -> tuple[float, float]:
    """Compute the 95 % interval of the true sigma from an estimate with these degrees of freedom, for normally
    distributed runs.
    """
    return bound_sigma(sigma, freedom, 0.05)
