"""Printed numbers as intervals: what a rounded text can have stood for.

"0.4829" is every number from 0.48285 to 0.48295; the text decides, not the value. Arithmetic on intervals is
mpmath's `iv`, which rounds outwards. Every formula of the audit uses each of its inputs once, so that the
interval it gives is the exact range; where that cannot be, it is monotone in each input and is taken over the
corners of the box (`over_corners`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Self

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
    """Lower end as a float."""
    return float(iv.mpf(interval).a)


def high(interval: Interval) -> float:
    """Upper end as a float."""
    return float(iv.mpf(interval).b)


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A number of a document.

    Attributes:
        text: as printed, without thousands separators: "0.4829", "-2.07", "1.5e-4".
        exact: a count or a stated setting: not rounded.
        relation: "=" or, for a number that is printed as a bound, "<" (then it stands for [0, text]).
        where: where it is printed, or what states it.
        cells: the printed cells that it is read from; none for a setting or a constant.
    """

    text: str
    exact: bool = False
    relation: str = "="
    where: str = ""
    cells: tuple[Cell, ...] = ()

    def __post_init__(self) -> None:
        try:
            Decimal(self.text)
        except InvalidOperation as error:
            raise PlumblineError(f"{self.text!r} ({self.where}) is not a number") from error

    @property
    def value(self) -> float:
        """The printed value itself."""
        return float(self.text)

    def exactly(self) -> Self:
        """The same number taken as it stands."""
        return replace(self, exact=True)

    def as_bound(self) -> Self:
        """The same number as the upper end of what it bounds."""
        return replace(self, relation="<")

    def without_sign(self) -> Self:
        """Its magnitude, as a text of the same digits."""
        return replace(self, text=self.text.lstrip("-"))

    def negated(self) -> Self:
        """The same number with the other sign."""
        return replace(self, text=self.text[1:] if self.text.startswith("-") else f"-{self.text}")

    def middle(self) -> Interval:
        """The printed value as an interval without width."""
        return iv.mpf(self.text)

    def interval(self) -> Interval:
        """Everything that rounds to the text: half a unit of its last digit to either side."""
        if self.relation == "<":
            return iv.mpf(["0", self.text])
        if self.exact:
            return iv.mpf(self.text)
        printed = Decimal(self.text)
        half = Decimal(5).scaleb(int(printed.as_tuple().exponent) - 1)
        return iv.mpf([str(printed - half), str(printed + half)])

    def __str__(self) -> str:
        return f"< {self.text}" if self.relation == "<" else self.text


def exact(value: int | float, where: str = "") -> Number:
    """A setting or count, taken as it stands."""
    return Number(text=str(value), exact=True, where=where)


def made_of(value: int | float, *numbers: Number) -> Number:
    """A number, taken as it stands, that was computed from printed ones: its cells are theirs."""
    return Number(text=str(value), exact=True, cells=tuple(cell for number in numbers for cell in number.cells))


def meet(first: Interval, second: Interval) -> bool:
    """Whether two closed intervals have a point in common, up to binary rounding of equal end points."""
    scale = max(abs(low(first)), abs(high(first)), abs(low(second)), abs(high(second)))
    slack = SLACK * scale if math.isfinite(scale) else 0.0
    return low(first) <= high(second) + slack and low(second) <= high(first) + slack


def touch(first: Interval, second: Interval) -> bool:
    """Whether two intervals, both with a width, have no more than an end in common."""
    scale = max(abs(low(first)), abs(high(first)), abs(low(second)), abs(high(second)))
    narrow = SLACK * scale
    if high(first) - low(first) <= narrow or high(second) - low(second) <= narrow:
        return False
    return abs(min(high(first), high(second)) - max(low(first), low(second))) <= narrow


def without_noise(value: float, scale: float) -> float:
    """A value of a range that reaches `scale`, or 0 where it is no more than binary fractions leave of an exact 0."""
    return 0.0 if abs(value) <= SLACK * scale and math.isfinite(scale) else value


def monotone(function: Callable[[float], float], interval: Interval) -> Interval:
    """Range of a monotone function of one input, from its two ends."""
    ends = (function(low(interval)), function(high(interval)))
    return span(min(ends), max(ends))


def over_corners(function: Callable[..., float], *intervals: Interval) -> Interval:
    """Range of a function that is monotone in each of its inputs over the box, from the box's corners."""
    ends = [sorted({low(interval), high(interval)}) for interval in intervals]
    values = [function(*corner) for corner in itertools.product(*ends)]
    return span(min(values), max(values))
