"""Computes with intervals: their ends, whether two of them meet, and ranges of functions over them.

Arithmetic on intervals is mpmath's `iv`, which rounds outwards. A function that arithmetic would make too wide is
monotone in each of its inputs and is taken over the corners of the box (`over_corners`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from mpmath import iv

from plumbline.core.errors import PlumblineError

#: An interval of the library: anything `iv` computes with.
Interval = Any

#: A printed cell: file (without ending), key of the row, column.
Cell = tuple[str, str, str]

#: Relative slack for binary fractions where two end points should be equal.
SLACK = 1e-12


def span(low: float, high: float) -> Interval:
    """The interval from `low` to `high`."""
    return iv.mpf([low, high])


def low(interval: Interval) -> float:
    """Lower end of an interval, as a float."""
    return float(iv.mpf(interval).a)


def high(interval: Interval) -> float:
    """Upper end of an interval, as a float."""
    return float(iv.mpf(interval).b)


def whole_numbers(interval: Interval) -> tuple[int, int]:
    """The smallest and the largest whole number in an interval: of a count that is read as a rounded number.

    Raises:
        PlumblineError: it holds none, or more than a thousand.
    """
    first, last = math.ceil(low(interval)), math.floor(high(interval))
    if not first <= last < first + 1000:
        raise PlumblineError(f"{low(interval):g} to {high(interval):g} is no count; exact(...) is not rounded")
    return first, last


def clip_to_1(interval: Interval) -> Interval:
    """What of an interval lies from -1 to 1: a cosine or correlation that rounds to 1 is not above it.

    Raises:
        PlumblineError: nothing does.
    """
    if not (low(interval) <= 1 and high(interval) >= -1):
        raise PlumblineError(f"{low(interval):g} to {high(interval):g} is not from -1 to 1")
    return span(max(low(interval), -1.0), min(high(interval), 1.0))


def meet(first: Interval, second: Interval) -> bool:
    """Whether two closed intervals have a point in common, up to binary rounding of equal end points."""
    scale = max(abs(low(first)), abs(high(first)), abs(low(second)), abs(high(second)))
    slack = SLACK * scale if math.isfinite(scale) else 0.0
    return low(first) <= high(second) + slack and low(second) <= high(first) + slack


def touch(first: Interval, second: Interval) -> bool:
    """Whether two intervals, neither of them a point, have only an end in common."""
    scale = max(abs(low(first)), abs(high(first)), abs(low(second)), abs(high(second)))
    narrow = SLACK * scale
    if high(first) - low(first) <= narrow or high(second) - low(second) <= narrow:
        return False
    return abs(min(high(first), high(second)) - max(low(first), low(second))) <= narrow


def without_noise(value: float, scale: float) -> float:
    """Replace a value by an exact 0 where it is only rounding error of binary fractions, relative to `scale`."""
    return 0.0 if abs(value) <= SLACK * scale and math.isfinite(scale) else value


def monotone(function: Callable[[float], float], interval: Interval) -> Interval:
    """Range of a monotone function over an interval, from the interval's two ends."""
    ends = (function(low(interval)), function(high(interval)))
    return span(min(ends), max(ends))


def over_corners(function: Callable[..., float], *intervals: Interval) -> Interval:
    """Range of a function that is monotone in each input, from the corners of the box that the intervals span."""
    ends = [sorted({low(interval), high(interval)}) for interval in intervals]
    values = [function(*corner) for corner in itertools.product(*ends)]
    return span(min(values), max(values))
