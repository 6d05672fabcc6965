"""Named formulas of the audit that count, rank or compare an order: what words such as "eight of 20" or "between" say.

A count at the printed inputs is a whole number: values that are printed as equal are not larger than each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from mpmath import iv

from plumbline.audit.formulas import Intervals, formula
from plumbline.audit.interval import SLACK, Interval, high, low, span


def _larger(x: Interval, c: Interval) -> tuple[bool, bool]:
    """Whether x > c for sure, and whether it can be."""
    slack = SLACK * max(abs(low(x)), abs(high(x)), abs(low(c)), abs(high(c)))
    return low(x) > high(c) + slack, high(x) > low(c) + slack


def _above(pairs: Iterable[tuple[Interval, Interval]]) -> Interval:
    """How many of the pairs (x, c) have x > c: from those that surely have it to those that can have it."""
    sure, possible = 0, 0
    for x, c in pairs:
        surely, possibly = _larger(x, c)
        sure, possible = sure + surely, possible + possibly
    return span(sure, possible)


@formula("count above", "how many x > c", whole=True)
def count_above(x: Intervals, c: Interval) -> Interval:
    return _above((value, c) for value in x)


@formula("count below", "how many x < c", whole=True)
def count_below(x: Intervals, c: Interval) -> Interval:
    return _above((c, value) for value in x)


@formula("count below minus", "how many x < -c", whole=True)
def count_below_minus(x: Intervals, c: Interval) -> Interval:
    return count_below(x, -c)


@formula("count within", "how many |x| < c", whole=True)
def count_within(x: Intervals, c: Interval) -> Interval:
    return count_below([abs(value) for value in x], c)


@formula("count beyond", "how many |x| > c", whole=True)
def count_beyond(x: Intervals, c: Interval) -> Interval:
    return count_above([abs(value) for value in x], c)


@formula("count near", "how many |x - mean| < c", whole=True)
def count_near(x: Intervals, mean: Interval, c: Interval) -> Interval:
    return _above((c, abs(value - mean)) for value in x)


@formula("count larger", "how many pairs with a > b", whole=True)
def count_larger(a: Intervals, b: Intervals) -> Interval:
    return _above(zip(a, b, strict=True))


@formula("count above half", "how many x > y / 2", whole=True)
def count_above_half(x: Intervals, y: Interval) -> Interval:
    return count_above(x, y / 2)


@formula("count same sign", "how many pairs with a b > 0", whole=True)
def count_same_sign(a: Intervals, b: Intervals) -> Interval:
    return count_above([first * second for first, second in zip(a, b, strict=True)], iv.mpf(0))


@formula("count rising", "how many steps of the sequence go up", whole=True)
def count_rising(x: Intervals) -> Interval:
    return _above((after, before) for before, after in itertools.pairwise(x))


@formula("count falling", "how many steps of the sequence go down", whole=True)
def count_falling(x: Intervals) -> Interval:
    return _above(itertools.pairwise(x))


@formula("count in same order", "how many pairs (i, j) with (a_i - a_j) (b_i - b_j) > 0", whole=True)
def count_in_order(a: Intervals, b: Intervals) -> Interval:
    sure, possible = 0, 0
    for i, j in itertools.permutations(range(len(a)), 2):
        (first, perhaps_first), (second, perhaps_second) = _larger(a[i], a[j]), _larger(b[i], b[j])
        sure, possible = sure + (first and second), possible + (perhaps_first and perhaps_second)
    # Two values that may be equal can be taken in either order, but count once.
    return span(sure, min(possible, len(a) * (len(a) - 1) // 2))


@formula("rank", "1 + how many others are larger", whole=True)
def rank(x: Interval, others: Intervals) -> Interval:
    return 1 + _above((other, x) for other in others)
