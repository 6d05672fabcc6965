"""Computes what a comparison of so many seeds can find: the smallest gain, and how many seeds another gain needs.

Gains are in the units of sigma. The deciding test is two-sided at level alpha; what counts as found is a method called
better, its upper tail. Equal numbers of seeds and both tails: `plumbline.stats.power_of_gain`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import optimize, stats

from plumbline.stats import seeds_needed

#: Here scipy's series for the noncentral t ends, and the numerator hardly varies: t is this over the estimated sigma.
FAR = 1000.0


@dataclass(frozen=True, slots=True)
class ComparisonDesign:
    """A comparison before its numbers are known: the standard error of a difference in units of sigma, and sigma's
    freedom.

    Attributes:
        error: sqrt(1/n + 1/n') of two sets of seeds, sqrt(1/n) of n differences.
        freedom: degrees of freedom of sigma; infinite if it is known.
        alpha: level of the two-sided test, after correction.
    """

    error: float
    freedom: float
    alpha: float

    @property
    def critical(self) -> float:
        """The critical value: what |t| has to reach."""
        return float(stats.t.isf(self.alpha / 2, self.freedom))

    def power(self, gain: float) -> float:
        """Compute the chance that a method with this gain (in units of sigma) is called better."""
        shift = gain / self.error
        if math.isinf(self.freedom):
            return float(stats.norm.sf(self.critical - shift))
        if shift > FAR:
            return float(stats.chi2.cdf(self.freedom * (shift / self.critical) ** 2, self.freedom))
        return float(stats.nct.sf(self.critical, self.freedom, shift))

    def resolved(self, power: float) -> float:
        """Compute the smallest gain (in units of sigma) that is found with the chance `power`."""
        high = self.critical * self.error
        while self.power(high) < power:
            high *= 2
        return float(optimize.brentq(lambda gain: self.power(gain) - power, 0, high, xtol=1e-6 * high))


def seeds_each(gain: float, sigma: float, design: ComparisonDesign, power: float, *, paired: bool) -> int | None:
    """Compute how many seeds of both the method and the baseline find a gain with the chance `power`.

    None above a million. `gain` and `sigma` are in units of the metric. Of pairs, it is their number, and sigma that of
    a difference.
    """
    if gain <= 0:
        return None
    if not paired and math.isfinite(design.freedom):
        try:
            return seeds_needed(gain, sigma, alpha=design.alpha, power=power)
        except ValueError:
            return None

    def found(n: int) -> float:
        freedom = n - 1 if paired else math.inf
        return ComparisonDesign(math.sqrt((1 if paired else 2) / n), freedom, design.alpha).power(gain / sigma)

    low, high = 1, 2
    while found(high) < power:
        low, high = high, 2 * high
        if high > 1_000_000:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high
