"""Named functions of the audit's expressions: roots, logarithms, sums, extremes, angles.

Each takes intervals (or lists of them) and gives one interval. It uses each input once wherever it can, so that its
interval is the exact range. A study makes functions of its own beside its rows.
"""

from __future__ import annotations

import math

from mpmath import iv

from plumbline.audit.expression import function
from plumbline.audit.interval import Interval, high, low, monotone, span

Intervals = list[Interval]


@function("square root")
def sqrt(x: Interval) -> Interval:
    return iv.sqrt(x)


@function("e^x")
def exp(x: Interval) -> Interval:
    return iv.exp(x)


@function("natural logarithm")
def log(x: Interval) -> Interval:
    return iv.log(x)


@function("logarithm to base 10")
def log10(x: Interval) -> Interval:
    return iv.log(x) / iv.log(10)


@function("sum of a list")
def total(x: Intervals) -> Interval:
    return sum(x, start=iv.mpf(0))


@function("sum of a list over its length")
def mean(x: Intervals) -> Interval:
    return sum(x, start=iv.mpf(0)) / len(x)


@function("largest of a list")
def largest(x: Intervals) -> Interval:
    return span(max(low(value) for value in x), max(high(value) for value in x))


@function("smallest of a list")
def smallest(x: Intervals) -> Interval:
    return span(min(low(value) for value in x), min(high(value) for value in x))


@function("anything from the smallest to the largest of its inputs", spans=True)
def between(*x: Interval) -> Interval:
    return span(min(low(value) for value in x), max(high(value) for value in x))


@function("exp(z_i) / sum_j exp(z_j), i counted from 0")
def softmax(z: Intervals, i: Interval) -> Interval:
    return 1 / sum((iv.exp(other - z[round(low(i))]) for other in z), start=iv.mpf(0))


@function("angle in degrees that has this cosine")
def arccos(x: Interval) -> Interval:
    return monotone(lambda cosine: math.degrees(math.acos(cosine)), x)


@function("cosine of an angle in degrees, from 0 to 180")
def cos(x: Interval) -> Interval:
    return monotone(lambda degrees: math.cos(math.radians(degrees)), x)
