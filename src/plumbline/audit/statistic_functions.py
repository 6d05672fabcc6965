"""Defines the audit's statistics as named functions: p-values, corrections, Welch's test, ranks."""

from __future__ import annotations

import itertools
import math

from plumbline.audit.expression import function
from plumbline.audit.interval_arithmetic import Interval, high, low, monotone, over_corners, span
from plumbline.audit.math_functions import Intervals
from plumbline.stats.distributions import normal_sf, t_sf
from plumbline.stats.multiplicity import adjust
from plumbline.stats.noise_floor import noise_floor
from plumbline.stats.rank_correlation import spearman
from plumbline.stats.welch_and_stouffer import welch


@function("sqrt(sum (x - mean)^2 / (n - 1))")
def sample_sd(x: Intervals) -> Interval:
    """Sample standard deviation sqrt(sum (x - mean)^2 / (n - 1)) of a list."""
    # Monotone in each value as long as no rounding carries a value across the mean.
    return over_corners(lambda *values: noise_floor(values).sigma, *x)


def _two_sided(z: float) -> float:
    return float(2 * normal_sf(z))


@function("2 (1 - Phi(|z|))")
def two_sided_p(z: Interval) -> Interval:
    """Two-sided p-value of a z under the standard normal: 2 (1 - Phi(|z|))."""
    return monotone(_two_sided, abs(z))


@function("1 - Phi(z)")
def one_sided_p(z: Interval) -> Interval:
    """One-sided p-value of a z under the standard normal: 1 - Phi(z)."""
    return monotone(lambda value: float(normal_sf(value)), z)


def _survivors(correction: str, z: Intervals, m: Interval, alpha: Interval) -> Interval:
    # Every adjusted p falls when any |z| grows: the smallest and largest |z| bound the count.
    counts = []
    for side in (low, high):
        p = [_two_sided(side(abs(value))) for value in z]
        counts.append(int((adjust(p, correction, m=round(low(m))) <= low(alpha)).sum()))  # type: ignore[arg-type]
    return span(min(counts), max(counts))


@function("how many Bonferroni-adjusted p of z are <= alpha, m tests")
def bonferroni_survivors(z: Intervals, m: Interval, alpha: Interval) -> Interval:
    """Number of z whose two-sided p, Bonferroni-adjusted for `m` tests, is at most `alpha`."""
    return _survivors("bonferroni", z, m, alpha)


@function("how many Holm-adjusted p of z are <= alpha, m tests")
def holm_survivors(z: Intervals, m: Interval, alpha: Interval) -> Interval:
    """Number of z whose two-sided p, Holm-adjusted for `m` tests, is at most `alpha`."""
    return _survivors("holm", z, m, alpha)


@function("how many Benjamini-Hochberg-adjusted p of z are <= alpha, m tests")
def bh_survivors(z: Intervals, m: Interval, alpha: Interval) -> Interval:
    """Number of z whose two-sided p, Benjamini-Hochberg-adjusted for `m` tests, is at most `alpha`."""
    return _survivors("bh", z, m, alpha)


@function("Benjamini-Hochberg survivors from Bonferroni p: largest k with p(k) / k <= alpha")
def bh_from_bonferroni(p: Intervals, alpha: Interval) -> Interval:
    """Number of Benjamini-Hochberg survivors, from Bonferroni-adjusted p: the largest k with p(k) / k <= alpha."""
    counts = []
    for side in (high, low):
        ordered = sorted(side(value) for value in p)
        passing = [k for k, value in enumerate(ordered, start=1) if value / k <= low(alpha)]
        counts.append(max(passing, default=0))
    return span(min(counts), max(counts))


def _welch_p(t: float, sd_a: float, sd_b: float, n: float) -> float:
    a, b = sd_a**2 / n, sd_b**2 / n
    return float(2 * t_sf(abs(t), (a + b) ** 2 / ((a**2 + b**2) / (n - 1))))


@function("2 (1 - T_df(|t|)), df of Welch and Satterthwaite from the two sd of n runs each")
def welch_p(t: Interval, sd_a: Interval, sd_b: Interval, n: Interval) -> Interval:
    """Two-sided p of a Welch t, degrees of freedom by Welch and Satterthwaite from the sd of `n` runs each."""
    return over_corners(_welch_p, t, sd_a, sd_b, n)


@function("Welch t of two lists")
def welch_t_of_seeds(a: Intervals, b: Intervals) -> Interval:
    """Welch's t of two lists of seeds' values."""
    return over_corners(lambda *x: welch(x[: len(a)], x[len(a) :]).t, *a, *b)


@function("two-sided p of the Welch t of two lists")
def welch_p_of_seeds(a: Intervals, b: Intervals) -> Interval:
    """Two-sided p of Welch's t of two lists of seeds' values."""
    return over_corners(lambda *x: welch(x[: len(a)], x[len(a) :]).p, *a, *b)


@function("share of pairs (a, b) with a <= b: 0 if and only if the bootstrap probability is 0")
def share_of_overlap(a: Intervals, b: Intervals) -> Interval:
    """Share of the pairs of two lists with a <= b: 0 if and only if the bootstrap probability of it is 0."""
    pairs = [(first, second) for first in a for second in b]
    sure = sum(high(first) <= low(second) for first, second in pairs)
    possible = sum(low(first) <= high(second) for first, second in pairs)
    return span(sure / len(pairs), possible / len(pairs))


def _ordered(x: Intervals) -> bool:
    """Whether rounding cannot change the order of the values."""
    ordered = sorted(x, key=low)
    return all(high(first) <= low(second) + 1e-12 for first, second in itertools.pairwise(ordered))


@function("Pearson correlation of the ranks")
def spearman_rho(x: Intervals, y: Intervals) -> Interval:
    """Spearman's rho of two lists, the correlation of their ranks; -1 to 1 where rounding leaves ranks open."""
    if not (_ordered(x) and _ordered(y)):
        return span(-1.0, 1.0)
    rho = spearman([low(value) for value in x], [low(value) for value in y]).rho
    return span(rho, rho)


@function("2 (1 - T_(n-2)(|rho| sqrt((n - 2) / (1 - rho^2))))")
def p_of_rho(rho: Interval, n: Interval) -> Interval:
    """Two-sided p of a rank correlation of `n` pairs, by t with n - 2 degrees of freedom."""

    def p(value: float) -> float:
        pairs = low(n)
        return float(2 * t_sf(value * math.sqrt((pairs - 2) / (1 - value**2)), pairs - 2))

    return monotone(p, abs(rho))


@function("rho = 1 - 6 D / (n (n^2 - 1)), D even: the one next to the printed rho")
def nearest_possible_rho(rho: Interval, n: Interval) -> Interval:
    """The value nearest to a printed rho that `n` untied pairs can have: 1 - 6 D / (n (n^2 - 1)), D even."""
    pairs = round(low(n))
    scale = pairs * (pairs**2 - 1) / 6
    target = (low(rho) + high(rho)) / 2
    return span(*(2 * [1 - 2 * round((1 - target) * scale / 2) / scale]))
