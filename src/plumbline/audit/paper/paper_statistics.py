"""Defines the p-values of t statistics as named functions of the audit."""

from __future__ import annotations

from plumbline.audit.expression import function
from plumbline.audit.interval_arithmetic import Interval, high, low, monotone, span
from plumbline.stats.distributions import t_sf


@function("2 (1 - T_df(|t|))")
def t_two_sided_p(t: Interval, df: Interval) -> Interval:
    """Two-sided p of a t with `df` degrees of freedom."""
    return monotone(lambda value: float(2 * t_sf(value, low(df))), abs(t))


@function("1 - T_df(t)")
def t_one_sided_p(t: Interval, df: Interval) -> Interval:
    """One-sided p of a t with `df` degrees of freedom."""
    return span(float(t_sf(high(t), low(df))), float(t_sf(low(t), low(df))))
