"""Transfer study: named formulas of its own. Importing this registers them."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.formulas import between, formula, relative_gap, softplus_offset
from plumbline.audit.interval import Interval


@formula("SSMax temperature", "1 / (s log n), s = softplus(logit) + c")
def ssmax_temperature(logit: Interval, c: Interval, n: Interval) -> Interval:
    return 1 / (softplus_offset(logit, c) * iv.log(n))


@formula("SSMax temperature gap", "100 |1 / (s log n) / reference - 1| %")
def ssmax_gap(logit: Interval, c: Interval, n: Interval, reference: Interval) -> Interval:
    return relative_gap(ssmax_temperature(logit, c, n), reference)


@formula("mean drop of a one-task failure", "(start + (n - 1) others) / n: one task falls to 0")
def one_task_failure(start: Interval, others: Interval, n: Interval) -> Interval:
    return (start + (n - 1) * others) / n


@formula("mean drop, one task free", "from (n - 1) lo / n to ((n - 1) hi + start) / n")
def one_task_free(lo: Interval, hi: Interval, start: Interval, n: Interval) -> Interval:
    return between((n - 1) * lo / n, one_task_failure(start, hi, n))


@formula("head-wise gate FLOPs", "100 x 3 x layers s 2 d H / F(baseline) %, F by appendix C.1")
def gate_flops(heads: Interval, layers: Interval, s: Interval, d: Interval, baseline: Interval) -> Interval:
    return 100 * 3 * layers * s * 2 * d * heads / baseline


@formula("FLOPs of missing weights", "100 x 3 x s 2 extra / F(baseline) %, F by appendix C.1")
def missing_flops(extra: Interval, s: Interval, baseline: Interval) -> Interval:
    return 100 * 3 * s * 2 * extra / baseline
