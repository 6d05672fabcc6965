"""Counts, ranks and compares orders, as named functions for words such as "eight of 20" or "falls".

A count at the printed inputs is a whole number: values that are printed as equal are not larger than each other.
"""

from __future__ import annotations

import itertools

from mpmath import iv

from plumbline.audit.math_functions import Intervals
from plumbline.published.expression import audit_function, exceeds
from plumbline.published.interval_arithmetic import Interval, high, low, span


@audit_function("how many comparisons of a list hold")
def count(x: Intervals) -> Interval:
    """Number of comparisons of a list that hold: the sum of their values, each 1, 0 or the interval from 0 to 1."""
    return sum(x, start=iv.mpf(0))


@audit_function("how many steps of the list go up")
def rising(x: Intervals) -> Interval:
    """Number of steps of a list that go up, an interval where rounding leaves a step open."""
    return sum((exceeds(second, first) for first, second in itertools.pairwise(x)), start=iv.mpf(0))


@audit_function("how many steps of the list go down")
def falling(x: Intervals) -> Interval:
    """Number of steps of a list that go down, an interval where rounding leaves a step open."""
    return sum((exceeds(first, second) for first, second in itertools.pairwise(x)), start=iv.mpf(0))


@audit_function("how many pairs (i, j) have (a_i - a_j) (b_i - b_j) > 0")
def in_same_order(a: Intervals, b: Intervals) -> Interval:
    """Number of ordered pairs (i, j) that two lists order alike, (a_i - a_j) (b_i - b_j) > 0, as an interval."""
    sure_count, possible_count = 0, 0
    for i, j in itertools.permutations(range(len(a)), 2):
        first, second = exceeds(a[i], a[j]), exceeds(b[i], b[j])
        sure_count += bool(low(first) and low(second))
        possible_count += bool(high(first) and high(second))
    # Two values that may be equal can be taken in either order, but count once.
    return span(sure_count, min(possible_count, len(a) * (len(a) - 1) // 2))


@audit_function("1 + how many others are larger")
def rank(x: Interval, others: Intervals) -> Interval:
    """Rank of `x` among itself and `others`: 1 for the largest, and one more for each of the others that is larger."""
    return sum((exceeds(other, x) for other in others), start=iv.mpf(1))
