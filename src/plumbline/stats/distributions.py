"""Gives tails and quantiles of the normal, t, F and chi-squared laws, bit for bit those of `scipy.stats`.

They are the special functions that `scipy.stats` itself calls; only its import, 0.7 s of a processor, is left out.
"""

from __future__ import annotations

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


def f_sf(x: float, df_above: float, df_below: float) -> float:
    """Chance that F, a ratio of two variances with these degrees of freedom, lies above x."""
    return float(special.fdtrc(df_above, df_below, x))


def f_quantile(p: float, df_above: float, df_below: float) -> float:
    """The value that F is at most with chance p."""
    return float(special.fdtri(df_above, df_below, p))
