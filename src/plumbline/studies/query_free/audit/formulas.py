"""query_free: named formulas of its own (appendix 8.2). Importing this registers them."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.formulas import formula
from plumbline.audit.interval import Interval


@formula("std of scores, learned query", "sigma^2 sqrt(d_k)")
def score_std(sigma: Interval, d_k: Interval) -> Interval:
    return sigma**2 * iv.sqrt(d_k)


@formula("std of scores, identity query", "sigma / sqrt(h)")
def reduced_score_std(sigma: Interval, h: Interval) -> Interval:
    return sigma / iv.sqrt(h)


@formula("score ratio", "1 / (sigma sqrt(h d_k))")
def score_ratio(sigma: Interval, h: Interval, d_k: Interval) -> Interval:
    return 1 / (sigma * iv.sqrt(h * d_k))
