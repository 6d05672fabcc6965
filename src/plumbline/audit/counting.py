"""Named functions that count, rank or compare an order: what words such as "eight of 20" or "falls" say.

A count at the printed inputs is a whole number: values that are printed as equal are not larger than each other.
"""

from __future__ import annotations

import itertools

from mpmath import iv

from plumbline.audit.expression import function, larger
from plumbline.audit.functions import Intervals
from plumbline.audit.interval import Interval, high, low, span


@function("how many comparisons of a list hold")
def count(x: Intervals) -> Interval:
    return sum(x, start=iv.mpf(0))


@function("how many steps of the list go up")
def rising(x: Intervals) -> Interval:
    return sum((larger(after, before) for before, after in itertools.pairwise(x)), start=iv.mpf(0))


@function("how many steps of the list go down")
def falling(x: Intervals) -> Interval:
    return sum((larger(before, after) for before, after in itertools.pairwise(x)), start=iv.mpf(0))


@function("how many pairs (i, j) have (a_i - a_j) (b_i - b_j) > 0")
def in_same_order(a: Intervals, b: Intervals) -> Interval:
    sure, possible = 0, 0
    for i, j in itertools.permutations(range(len(a)), 2):
        first, second = larger(a[i], a[j]), larger(b[i], b[j])
        sure += bool(low(first) and low(second))
        possible += bool(high(first) and high(second))
    # Two values that may be equal can be taken in either order, but count once.
    return span(sure, min(possible, len(a) * (len(a) - 1) // 2))


@function("1 + how many others are larger")
def rank(x: Interval, others: Intervals) -> Interval:
    return sum((larger(other, x) for other in others), start=iv.mpf(1))
