"""Reads printed numbers as everything that a rounded text can have stood for.

"0.4829" is every number from 0.48285 to 0.48295; the text decides, not the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Self

from mpmath import iv

from plumbline.core.errors import PlumblineError
from plumbline.published.expression import ATOM, SIGN, Expression, ExpressionInput, ExpressionOperand
from plumbline.published.interval_arithmetic import Cell, Interval

#: Units that multiply, as powers of ten.
THOUSANDS = {"K": 3, "k": 3, "M": 6, "G": 9, "B": 9, "T": 12}


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedNumber(ExpressionOperand):
    """A number that a paper prints.

    Attributes:
        text: as printed, without thousands separators: "0.4829", "-2.07", "1.5e-4".
        exact: it is a count or a stated setting, not a rounded number.
        relation: "=" or, for a number that is printed as a bound, "<" (then it stands for [0, text]).
        name: its name in the text of expressions; empty: they write out the number.
        where: where it is printed.
        cells: the printed cells that it is read from; none for a setting or a constant.
        shown: how the paper prints it, where that is not the text: "124.4M".
    """

    text: str
    exact: bool = False
    relation: str = "="
    name: str = ""
    where: str = ""
    cells: tuple[Cell, ...] = ()
    shown: str = ""

    def __post_init__(self) -> None:
        try:
            Decimal(self.text)
        except InvalidOperation as error:
            raise PlumblineError(f"{self.text!r} ({self.where or self.name}) is not a number") from error

    @property
    def value(self) -> float:
        """The printed value as a float, without its rounding."""
        return float(self.text)

    def exactly(self) -> Self:
        """The same number taken as exact: not rounded."""
        return replace(self, exact=True)

    def as_rounded(self) -> Self:
        """The same number taken as rounded to its last digit, though it counts something."""
        return replace(self, exact=False)

    def as_bound(self) -> Self:
        """The same number as an upper bound: it stands for everything from 0 to the text."""
        return replace(self, relation="<")

    def without_sign(self) -> Self:
        """The number's magnitude, with the same digits."""
        return replace(self, text=self.text.lstrip("-"), shown=self.shown.lstrip("-"))

    def middle(self) -> Interval:
        """The printed value as an interval without width."""
        return iv.mpf(self.text)

    def interval(self) -> Interval:
        """The interval of everything that rounds to the text: half a unit of its last digit to either side."""
        if self.relation == "<":
            return iv.mpf(["0", self.text])
        if self.exact:
            return iv.mpf(self.text)
        value = Decimal(self.text)
        half = Decimal(5).scaleb(int(value.as_tuple().exponent) - 1)
        return iv.mpf([str(value - half), str(value + half)])

    def expression(self) -> Expression:
        """Turn the number into an expression: its printed value, and the interval of what rounds to it."""
        return Expression(
            text=self.name or str(self),
            printed=(self.middle(),),
            ranges=(self.interval(),),
            binding=SIGN if not self.name and self.text.startswith("-") else ATOM,
            inputs=(ExpressionInput(self.name, str(self), self.cells),),
        )

    def __str__(self) -> str:
        text = self.shown or self.text
        return f"< {text}" if self.relation == "<" else text


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedColumn(ExpressionOperand):
    """The printed numbers of one column under one name; operators take them one by one."""

    name: str
    numbers: tuple[PrintedNumber, ...]

    def __iter__(self) -> Iterator[PrintedNumber]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> PrintedNumber:
        return self.numbers[place]

    def exactly(self) -> Self:
        """The same column with every number taken as exact: not rounded."""
        return replace(self, numbers=tuple(number.exactly() for number in self))

    def as_bounds(self) -> Self:
        """The same column with every number as an upper bound."""
        return replace(self, numbers=tuple(number.as_bound() for number in self))

    def expression(self) -> Expression:
        """Turn the column into one expression that stands for all of its numbers."""
        cells = tuple(cell for number in self for cell in number.cells)
        return Expression(
            text=self.name,
            printed=tuple(number.middle() for number in self),
            ranges=tuple(number.interval() for number in self),
            inputs=(ExpressionInput(self.name, " ".join(map(str, self)), cells),),
            several=True,
        )


def exact(value: int | float, name: str = "") -> PrintedNumber:
    """A setting or count as an exact number."""
    return PrintedNumber(text=str(value), exact=True, name=name)


def derive_exact(value: int | float, *numbers: PrintedNumber, name: str = "") -> PrintedNumber:
    """An exact number that was computed from printed ones, and counts as read from their cells."""
    cells = tuple(cell for number in numbers for cell in number.cells)
    return PrintedNumber(text=str(value), exact=True, name=name, cells=cells)


#: Units of printed counts, as expressions call them.
MILLION, BILLION = exact(10**6, "million"), exact(10**9, "billion")
