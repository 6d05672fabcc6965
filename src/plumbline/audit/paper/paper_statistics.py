"""Defines the p-values of t statistics as named functions of the audit."""

from __future__ import annotations

from plumbline.audit.statistic_functions import p_of_t
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import Interval


@audit_function("2 (1 - T_df(|t|))")
def t_two_sided_p(t: Interval, df: Interval) -> Interval:
    """Two-sided p of a t with `df` degrees of freedom."""
    return p_of_t(abs(t), df, sides=2)


@audit_function("1 - T_df(t)")
def t_one_sided_p(t: Interval, df: Interval) -> Interval:
    """One-sided p of a t with `df` degrees of freedom."""
    return p_of_t(t, df, sides=1)
