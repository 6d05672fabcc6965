"""Defines named functions of the audit's expressions: roots, logarithms, sums, extremes, angles.

Each takes intervals (or lists of them) and gives one interval. It uses each input once wherever it can, so that its
interval is the exact range. A study defines its own functions next to its rows.
"""

from __future__ import annotations

import math

from mpmath import iv

from plumbline.core.errors import PlumblineError
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import Interval, clip_to_1, high, low, monotone, span, whole_numbers

Intervals = list[Interval]


@audit_function("square root")
def sqrt(x: Interval) -> Interval:
    """Square root of an interval."""
    return iv.sqrt(x)


@audit_function("e^x")
def exp(x: Interval) -> Interval:
    """Exponential e^x of an interval."""
    return iv.exp(x)


@audit_function("natural logarithm")
def log(x: Interval) -> Interval:
    """Natural logarithm of an interval."""
    return iv.log(x)


@audit_function("logarithm to base 10")
def log10(x: Interval) -> Interval:
    """Logarithm to base 10 of an interval."""
    return iv.log(x) / iv.log(10)


@audit_function("sum of a list")
def total(x: Intervals) -> Interval:
    """Sum of a list."""
    return sum(x, start=iv.mpf(0))


@audit_function("sum of a list over its length")
def mean(x: Intervals) -> Interval:
    """Arithmetic mean of a list."""
    return sum(x, start=iv.mpf(0)) / len(x)


@audit_function("largest of a list")
def largest(x: Intervals) -> Interval:
    """Largest of a list: the interval of its largest lower and largest upper end."""
    return span(max(low(value) for value in x), max(high(value) for value in x))


@audit_function("smallest of a list")
def smallest(x: Intervals) -> Interval:
    """Smallest of a list: the interval of its smallest lower and smallest upper end."""
    return span(min(low(value) for value in x), min(high(value) for value in x))


@audit_function("anything from the smallest to the largest of its inputs", spans=True)
def between(*x: Interval) -> Interval:
    """The interval from the smallest lower end to the largest upper end of its inputs."""
    return span(min(low(value) for value in x), max(high(value) for value in x))


@audit_function("exp(z_i) / sum_j exp(z_j), i counted from 0")
def softmax(z: Intervals, i: Interval) -> Interval:
    """Softmax weight exp(z_i) / sum_j exp(z_j) of entry `i`, counted from 0."""
    place, last = whole_numbers(i)
    if not 0 <= place == last < len(z):
        raise PlumblineError(f"there is no entry {low(i):g} to {high(i):g}: they are counted from 0 to {len(z) - 1}")
    # Less its own score before all: a score does not part from itself.
    other_scores = [score for at, score in enumerate(z) if at != place]
    return 1 / sum((iv.exp(score - z[place]) for score in other_scores), start=iv.mpf(1))


@audit_function("angle in degrees that has this cosine")
def arccos(x: Interval) -> Interval:
    """Angle in degrees that has the cosine `x`."""
    return monotone(lambda cosine: math.degrees(math.acos(cosine)), clip_to_1(x))


@audit_function("cosine of an angle in degrees, from 0 to 180")
def cos(x: Interval) -> Interval:
    """Cosine of an angle `x` in degrees, from 0 to 180."""
    return iv.cos(x * iv.pi / 180)
