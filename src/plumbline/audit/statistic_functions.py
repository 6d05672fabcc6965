"""Defines the audit's statistics as named functions: p-values, corrections, Welch's test, ranks."""

from __future__ import annotations

import itertools
import math

from mpmath import iv

from plumbline.audit.math_functions import Intervals
from plumbline.core.errors import PlumblineError
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import (
    Interval,
    clip_to_1,
    high,
    low,
    meet,
    monotone,
    over_corners,
    span,
    whole_numbers,
)
from plumbline.stats.distributions import chi_squared_sf, f_sf, normal_sf, t_sf
from plumbline.stats.multiplicity import adjust
from plumbline.stats.noise_floor import noise_floor
from plumbline.stats.rank_correlation import spearman


@audit_function("sqrt(sum (x - mean)^2 / (n - 1))")
def sample_sd(x: Intervals) -> Interval:
    """Sample standard deviation sqrt(sum (x - mean)^2 / (n - 1)) of a list."""
    return _sd(x)


def _sd(x: Intervals) -> Interval:
    """Range of the sample standard deviation: convex, it is largest at a corner and smallest where the values crowd."""
    corners = over_corners(lambda *values: noise_floor(values).sigma, *x)
    if all(low(value) == high(value) for value in x):
        return corners
    # The values nearest to m, for the m that is their own mean: found by halving, for mean less m falls in m.
    below, above = min(map(low, x)), max(map(high, x))
    for _ in range(80):
        middle = (below + above) / 2
        if sum(_clamp(value, middle) - middle for value in x) > 0:
            below = middle
        else:
            above = middle
    crowded = noise_floor([_clamp(value, (below + above) / 2) for value in x]).sigma
    return span(min(crowded, low(corners)), high(corners))


def _mean(x: Intervals) -> Interval:
    return sum(x, start=iv.mpf(0)) / len(x)


def _clamp(interval: Interval, value: float) -> float:
    return min(max(value, low(interval)), high(interval))


def p_of_t(t: Interval, df: Interval, *, sides: int) -> Interval:
    """Range of the p of a t (of its magnitude, for two sides): it falls in t, and in df on either side of 0.

    Raises:
        PlumblineError: the degrees of freedom can be 0.
    """
    if not low(df) > 0:
        raise PlumblineError(
            f"the degrees of freedom are {low(df):g} to {high(df):g} within rounding; exact(...) is not rounded"
        )
    return over_corners(lambda value, freedom: float(sides * t_sf(value, freedom)), t, df)


def _two_sided_p(z: float) -> float:
    return float(2 * normal_sf(z))


@audit_function("2 (1 - Phi(|z|))")
def two_sided_p(z: Interval) -> Interval:
    """Two-sided p-value of a z under the standard normal: 2 (1 - Phi(|z|))."""
    return monotone(_two_sided_p, abs(z))


@audit_function("1 - Phi(z)")
def one_sided_p(z: Interval) -> Interval:
    """One-sided p-value of a z under the standard normal: 1 - Phi(z)."""
    return monotone(lambda value: float(normal_sf(value)), z)


def _survivors(correction: str, z: Intervals, m: Interval, alpha: Interval) -> Interval:
    # Every adjusted p falls when any |z| grows or m falls: the ends of all three bound the count.
    fewest, most = whole_numbers(m)
    counts = []
    for side, tests in ((low, most), (high, fewest)):
        p = [_two_sided_p(side(abs(value))) for value in z]
        counts.append(int((adjust(p, correction, m=tests) <= side(alpha)).sum()))  # type: ignore[arg-type]
    return span(*counts)


@audit_function("how many Bonferroni-adjusted p of z are <= alpha, m tests")
def bonferroni_survivors(z: Intervals, m: Interval, alpha: Interval) -> Interval:
    """Number of z whose two-sided p, Bonferroni-adjusted for `m` tests, is at most `alpha`."""
    return _survivors("bonferroni", z, m, alpha)


@audit_function("how many Holm-adjusted p of z are <= alpha, m tests")
def holm_survivors(z: Intervals, m: Interval, alpha: Interval) -> Interval:
    """Number of z whose two-sided p, Holm-adjusted for `m` tests, is at most `alpha`."""
    return _survivors("holm", z, m, alpha)


@audit_function("how many Benjamini-Hochberg-adjusted p of z are <= alpha, m tests")
def bh_survivors(z: Intervals, m: Interval, alpha: Interval) -> Interval:
    """Number of z whose two-sided p, Benjamini-Hochberg-adjusted for `m` tests, is at most `alpha`."""
    return _survivors("bh", z, m, alpha)


@audit_function("Benjamini-Hochberg survivors from Bonferroni p: largest k with p(k) / k <= alpha")
def bh_from_bonferroni(p: Intervals, alpha: Interval) -> Interval:
    """Number of Benjamini-Hochberg survivors, from Bonferroni-adjusted p: the largest k with p(k) / k <= alpha."""
    counts = []
    for side, level in ((high, low), (low, high)):
        ordered = sorted(side(value) for value in p)
        passing = [k for k, value in enumerate(ordered, start=1) if value / k <= level(alpha)]
        counts.append(max(passing, default=0))
    return span(*counts)


@audit_function("2 (1 - T_df(|t|)), df of Welch and Satterthwaite from the two sd of n runs each")
def welch_p(t: Interval, sd_a: Interval, sd_b: Interval, n: Interval) -> Interval:
    """Two-sided p of a Welch t, degrees of freedom by Welch and Satterthwaite from the sd of `n` runs each."""
    return p_of_t(abs(t), _welch_df(sd_a, sd_b, n, n), sides=2)


def _welch_df(sd_a: Interval, sd_b: Interval, n_a: Interval, n_b: Interval) -> Interval:
    """Range of the degrees of freedom: they rise with n, and with the share a / b up to the one that gives most."""

    def df(sd_a: float, sd_b: float, n_a: float, n_b: float) -> float:
        a, b = sd_a**2 / n_a, sd_b**2 / n_b
        return (a + b) ** 2 / (a**2 / (n_a - 1) + b**2 / (n_b - 1))

    ends = []
    for side in (low, high):
        n, m = side(n_a), side(n_b)
        if not (n > 1 and m > 1):
            raise PlumblineError(f"a test of {n:g} and {m:g} runs has no degrees of freedom; exact(...) is not rounded")
        corners = over_corners(lambda a, b, n=n, m=m: df(a, b, n, m), sd_a, sd_b)
        a, b = (abs(sd) / math.sqrt(runs * (runs - 1)) for sd, runs in ((sd_a, n), (sd_b, m)))
        ends.append((low(corners), n + m - 2 if meet(a, b) else high(corners)))
    return span(ends[0][0], ends[1][1])


@audit_function("Welch t of two lists")
def welch_t_of_seeds(a: Intervals, b: Intervals) -> Interval:
    """Welch's t of two lists of seeds' values: (mean a - mean b) / sqrt(sd_a^2 / n_a + sd_b^2 / n_b)."""
    return (_mean(a) - _mean(b)) / iv.sqrt(_sd(a) ** 2 / len(a) + _sd(b) ** 2 / len(b))


@audit_function("two-sided p of the Welch t of two lists")
def welch_p_of_seeds(a: Intervals, b: Intervals) -> Interval:
    """Two-sided p of Welch's t of two lists of seeds' values."""
    t = (_mean(a) - _mean(b)) / iv.sqrt(_sd(a) ** 2 / len(a) + _sd(b) ** 2 / len(b))
    return p_of_t(abs(t), _welch_df(_sd(a), _sd(b), iv.mpf(len(a)), iv.mpf(len(b))), sides=2)


@audit_function("share of pairs (a, b) with a <= b: 0 if and only if the bootstrap probability is 0")
def share_of_overlap(a: Intervals, b: Intervals) -> Interval:
    """Share of the pairs of two lists with a <= b: 0 if and only if the bootstrap probability of it is 0."""
    pairs = [(first, second) for first in a for second in b]
    sure_count = sum(high(first) <= low(second) for first, second in pairs)
    possible_count = sum(low(first) <= high(second) for first, second in pairs)
    return span(sure_count / len(pairs), possible_count / len(pairs))


def _is_ordered(x: Intervals) -> bool:
    """Whether rounding cannot change the order of the values."""
    ordered = sorted(x, key=low)
    return all(high(first) <= low(second) + 1e-12 for first, second in itertools.pairwise(ordered))


@audit_function("Pearson correlation of the ranks")
def spearman_rho(x: Intervals, y: Intervals) -> Interval:
    """Spearman's rho of two lists, the correlation of their ranks; -1 to 1 where rounding leaves ranks open."""
    if not (_is_ordered(x) and _is_ordered(y)):
        return span(-1.0, 1.0)
    rho = spearman([low(value) for value in x], [low(value) for value in y]).rho
    return span(rho, rho)


@audit_function("2 (1 - T_(n-2)(|rho| sqrt((n - 2) / (1 - rho^2))))")
def p_of_rho(rho: Interval, n: Interval) -> Interval:
    """Two-sided p of a rank correlation of `n` pairs, by t with n - 2 degrees of freedom."""
    fewest, most = whole_numbers(n)
    if fewest < 3:
        raise PlumblineError(f"a correlation of {fewest} pairs has no p; it takes three pairs or more")

    def p(value: float, pairs: float) -> float:
        if value == 1:
            return 0.0
        return float(2 * t_sf(value * math.sqrt((pairs - 2) / (1 - value**2)), pairs - 2))

    return over_corners(p, abs(clip_to_1(rho)), span(fewest, most))


@audit_function("rho = 1 - 6 D / (n (n^2 - 1)), D even: the one next to the printed rho")
def nearest_possible_rho(rho: Interval, n: Interval) -> Interval:
    """The value nearest to a printed rho that `n` untied pairs can have: 1 - 6 D / (n (n^2 - 1)), D even."""
    candidates = []
    fewest, most = whole_numbers(n)
    for pairs in range(fewest, most + 1):
        scale = pairs * (pairs**2 - 1) / 6
        candidates += [1 - 2 * round((1 - end) * scale / 2) / scale for end in (low(rho), high(rho))]
    return span(min(candidates), max(candidates))


@audit_function("2 (1 - T_df(|t|))")
def t_two_sided_p(t: Interval, df: Interval) -> Interval:
    """Two-sided p of a t with `df` degrees of freedom."""
    return p_of_t(abs(t), df, sides=2)


@audit_function("1 - T_df(t)")
def t_one_sided_p(t: Interval, df: Interval) -> Interval:
    """One-sided p of a t with `df` degrees of freedom."""
    return p_of_t(t, df, sides=1)


@audit_function("1 - F_(a, b)(f)")
def f_p(f: Interval, df_above: Interval, df_below: Interval) -> Interval:
    """P of an F with these degrees of freedom above and below."""
    return over_corners(f_sf, f, df_above, df_below)


@audit_function("1 - Chi2_df(x)")
def chi_squared_p(x: Interval, df: Interval) -> Interval:
    """P of a chi-squared with `df` degrees of freedom."""
    return over_corners(chi_squared_sf, x, df)
