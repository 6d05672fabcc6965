"""Transfer study: named formulas of its own. Importing this registers them."""

from __future__ import annotations

import math

from mpmath import iv

from plumbline.audit.formulas import Intervals, between, formula, relative, relative_gap, softplus_offset
from plumbline.audit.interval import Interval, low, span
from plumbline.audit.statistics import rho_p, spearman_rho


@formula("SSMax temperature", "1 / (s log n), s = softplus(logit) + c")
def ssmax_temperature(logit: Interval, c: Interval, n: Interval) -> Interval:
    return 1 / (softplus_offset(logit, c) * iv.log(n))


@formula("SSMax temperature gap", "100 |1 / (s log n) / reference - 1| %")
def ssmax_gap(logit: Interval, c: Interval, n: Interval, reference: Interval) -> Interval:
    return relative_gap(ssmax_temperature(logit, c, n), reference)


@formula("mean drop of a one-task failure", "(start + (n - 1) others) / n: one task falls to 0")
def one_task_failure(start: Interval, others: Interval, n: Interval) -> Interval:
    return (start + (n - 1) * others) / n


@formula("mean drop, one task free", "from (n - 1) lo / n to ((n - 1) hi + start) / n", spans=True)
def one_task_free(lo: Interval, hi: Interval, start: Interval, n: Interval) -> Interval:
    return between((n - 1) * lo / n, one_task_failure(start, hi, n))


@formula("FLOPs by appendix C.1", "100 (F / F(baseline) - 1) %, F = 3 sum_l (2 s^2 d + 2 s weights_l)")
def added_flops(flops: Interval, baseline: Interval) -> Interval:
    return relative(flops, baseline)


@formula("further runs", "k (n - 1)")
def further_runs(methods: Interval, seeds: Interval) -> Interval:
    return methods * (seeds - 1)


@formula("logging intervals between", "(a - b) / c")
def intervals_between(after: Interval, before: Interval, interval: Interval) -> Interval:
    return (after - before) / interval


@formula("shards at one length", "ceil(s / length), length = ceil(s' / n'): the least that n' shards need", whole=True)
def shards_at_one_length(sequences: Interval, other_sequences: Interval, other_shards: Interval) -> Interval:
    length = math.ceil(low(other_sequences) / low(other_shards))
    shards = math.ceil(low(sequences) / length)
    return span(shards, shards)


@formula(
    "tokens that packing trims", "per cent of s c tokens, from 0 to n (c - 1): less than a sequence a shard", spans=True
)
def trimmed(shards: Interval, sequences: Interval, context: Interval) -> Interval:
    return between(iv.mpf(0), 100 * shards * (context - 1) / (sequences * context))


@formula("p of Spearman rho", "rho of the two lists, then p of rho by t")
def spearman_p(x: Intervals, y: Intervals) -> Interval:
    return rho_p(spearman_rho(x, y), iv.mpf(len(x)))
