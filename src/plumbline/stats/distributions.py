"""Gives tails and quantiles of the normal, t, F and chi-squared laws, bit for bit those of `scipy.stats`.

They are the special functions that `scipy.stats` itself calls; only its import, 0.7 s of a processor, is left out.
Noncentral t has one integral over sigma's law. With R a chi variable of df + 1 degrees of freedom and
r = t / sqrt(df + t^2), its density over the central density of t is E exp(ncp r R - ncp^2 / 2). The integrand is smooth
in log R, so that an even sum converges faster than any power.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

#: A number, or an array of them.
Numbers = np.ndarray | float


def normal_sf(x: Numbers) -> Numbers:
    """Chance that a standard normal lies above x."""
    return special.ndtr(-np.asarray(x, dtype=float))


def normal_isf(p: Numbers) -> Numbers:
    """The x above which a standard normal lies with chance p, which lies in (0, 1)."""
    return -special.ndtri(p)


def t_sf(x: Numbers, df: Numbers) -> Numbers:
    """Chance that Student's t with `df` degrees of freedom lies above x; NaN where `df` is not above 0."""
    return special.stdtr(df, -np.asarray(x, dtype=float))


def t_isf(p: Numbers, df: float) -> Numbers:
    """The x above which Student's t with `df` degrees of freedom lies with chance p, which lies in (0, 1)."""
    return -special.stdtrit(df, p)


def noncentral_t_cdf(x: float, df: float, shift: float) -> float:
    """Chance that the non-central t, (normal + shift) / sqrt(chi-squared / df), is at most x."""
    return float(special.nctdtr(df, shift, x))


def noncentral_t_sf(x: float, df: float, shift: float) -> float:
    """Chance that the non-central t lies above x: that its mirror image is at most -x."""
    return float(special.nctdtr(df, -shift, -x))


def chi_squared_quantile(p: Numbers, df: float) -> Numbers:
    """The value that chi-squared with `df` degrees of freedom is at most with chance p."""
    return 2 * special.gammaincinv(df / 2, p)


def chi_squared_sf(x: float, df: float) -> float:
    """Chance that chi-squared with `df` degrees of freedom lies above x."""
    return float(special.chdtrc(df, x))


def f_sf(x: float, df_above: float, df_below: float) -> float:
    """Chance that F, a ratio of two variances with these degrees of freedom, lies above x."""
    return float(special.fdtrc(df_above, df_below, x))


def f_quantile(p: float, df_above: float, df_below: float) -> float:
    """The value that F is at most with chance p."""
    return float(special.fdtri(df_above, df_below, p))


def bound_share(successes: int, trials: int, tail: float) -> tuple[float, float]:
    """Clopper and Pearson's bounds of a true share: each is wrong with a chance of `tail` at most."""
    low = float(special.betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(special.betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high


def log_ratio(r: np.ndarray, df: float, ncp: float) -> np.ndarray:
    """Logarithm of noncentral over central density of t with df degrees of freedom, at r = t / sqrt(df + t^2)."""
    n, y = df + 1, ncp * np.asarray(r, dtype=float)[..., None]
    mode = (y + np.sqrt(y * y + 4 * n)) / 2
    width = 1 / np.sqrt(2 * mode * mode - y * mode)
    steps = np.arange(-(8 + 24 * math.sqrt(1 / n)), 8, 0.3)
    log_points = np.log(mode) + width * steps
    big = np.exp(log_points)
    log_constant = (1 - n / 2) * math.log(2) - special.gammaln(n / 2)
    terms = special.logsumexp(n * log_points - big * big / 2 + y * big + np.log(width * 0.3), axis=-1)
    return terms + log_constant - ncp * ncp / 2


def sigma_law(df: float) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of a sigma of 1 with df degrees of freedom, and weights with which to take means over them."""
    step = 0.1 / math.sqrt(2 * df)
    logs = math.log(df) / 2 + step * np.arange(-(90 + 300 / math.sqrt(df)), 90)
    chi = np.exp(logs)
    constant = (1 - df / 2) * math.log(2) - special.gammaln(df / 2)
    return chi / math.sqrt(df), np.exp(df * logs - chi * chi / 2 + constant) * step
