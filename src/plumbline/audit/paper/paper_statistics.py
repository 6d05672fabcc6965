"""Defines the p-values of t, F and chi-squared statistics as named functions of the audit."""

from __future__ import annotations

from plumbline.audit.statistic_functions import p_of_t
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import Interval, over_corners
from plumbline.stats.distributions import chi_squared_sf, f_sf


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
