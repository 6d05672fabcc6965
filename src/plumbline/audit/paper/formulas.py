"""Lists the formulas that numbers of a table are tried against: how they compute, and the names that state them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.audit.math_functions import mean, total
from plumbline.audit.paper.lines import Ends, Line
from plumbline.audit.paper.names import CHANGE, MEAN
from plumbline.published.expression import Given
from plumbline.published.printed_number import PrintedNumber

BASELINE, GROUP_FIRST = "that of {}", "that of the first row of its group"

_PERCENT = "%|percent|pct|rel|relative|reduction|saving|savings|saved|overhead|share|recovery|recovered|retention"
_RATIO = "ratio|speedup|speed up|×|x|factor|times|rel|relative|normalized|compression"
_SUM = "total|sum|all"


@dataclass(frozen=True, kw_only=True, eq=False)
class Formula:
    """A formula of two numbers or more.

    Attributes:
        text: a sentence of it, with the names in it.
        pattern: words of a name that state it; `units`: units of its numbers that do.
        compute: of floats, and of printed numbers too where there is no `express`.
        express: the same of printed numbers, where it must be written otherwise to have each of them once.
        ordered: whether the order of the two matters.
        pairs, baseline: whether it is tried of two lines, and against a row.
        unsaid: whether it is tried where no name states it.
        unsigned: it is tried only where the target prints no sign, which then may be in a colour or a word.
        divides: the place of the number that it divides by.
        falls: of one that rises or falls throughout, the place of the number with which it falls; -1: with neither.
        linear: it adds or subtracts what must be of one kind; `adds`: it gives a total.
    """

    text: str
    pattern: str
    compute: Callable[..., Any]
    express: Callable[..., Given] | None = None
    units: frozenset[str] = frozenset()
    ordered: bool = True
    pairs: bool = True
    baseline: bool = True
    unsaid: bool = False
    unsigned: bool = False
    divides: int | None = None
    falls: int | None = None
    linear: bool = False
    adds: bool = False

    def says(self, line: Line) -> bool:
        """Whether a line's name or unit states the formula."""
        return line.says(self.pattern) or bool(self.units & line.units)

    def ends(self, operands: Sequence[Ends]) -> Ends | None:
        """Ends of its value, from those of what it is given; None if it has none."""
        compute = self.compute
        try:
            if compute is _mean or compute is _sum:
                lowest, middle, highest = map(compute, zip(*operands, strict=True))
                return lowest, middle, highest
            (low, first, high), (other_low, second, other_high) = operands
            if self.falls is not None:
                if self.falls == 0:
                    low, high = high, low
                elif self.falls == 1:
                    other_low, other_high = other_high, other_low
                return compute(low, other_low), compute(first, second), compute(high, other_high)
            if self.divides is not None and operands[self.divides][0] <= 0 <= operands[self.divides][2]:
                return None
            values = (
                compute(low, other_low),
                compute(low, other_high),
                compute(high, other_low),
                compute(high, other_high),
            )
            least = 0.0 if self.unsigned and low <= other_high and other_low <= high else min(values)
            return least, compute(first, second), max(values)
        except (ZeroDivisionError, OverflowError):
            return None

    def expression(self, numbers: Sequence[PrintedNumber]) -> Given:
        """The formula of printed numbers."""
        express = self.express or self.compute
        if self.compute is _mean or self.compute is _sum:
            return express(numbers)
        return express(*numbers)

    def sentence(self, target: str, operands: Sequence[str], along: str) -> str:
        """Write the formula as a sentence, with names."""
        if self.compute is _mean or self.compute is _sum:
            names = ", ".join(operands[:6]) + (f" and {len(operands) - 6} more" if len(operands) > 6 else "")
            return self.text.format(target, f"the {along}s {names}")
        return self.text.format(target, *operands)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _sum(values: Sequence[float]) -> float:
    return sum(values)


#: Formulas of two numbers, a and b: lines, or a baseline's and a row's own.
FORMULAS = (
    Formula(
        text="{0} is {2} less {1}",
        pattern=CHANGE,
        falls=0,
        compute=lambda a, b: b - a,
        unsaid=True,
        linear=True,
    ),
    Formula(
        text="{0} is {2} less {1}, in points of a hundred",
        pattern=f"{CHANGE}|pp|points|%",
        falls=0,
        compute=lambda a, b: 100 * (b - a),
        linear=True,
    ),
    Formula(
        text="{0} is what {2} is above {1}, in per cent of it",
        pattern=f"{CHANGE}|{_PERCENT}",
        units=frozenset("%"),
        divides=0,
        compute=lambda a, b: 100 * (b - a) / a,
        express=lambda a, b: 100 * (b / a - 1),
    ),
    Formula(
        text="{0} is what {2} is below {1}, in per cent of it",
        pattern=f"{CHANGE}|{_PERCENT}",
        units=frozenset("%"),
        divides=0,
        compute=lambda a, b: 100 * (a - b) / a,
        express=lambda a, b: 100 * (1 - b / a),
    ),
    Formula(
        text="{0} is {2} in per cent of {1}",
        pattern=_PERCENT,
        units=frozenset("%"),
        divides=0,
        compute=lambda a, b: 100 * b / a,
    ),
    Formula(
        text="{0} is {2} over {1}",
        pattern=_RATIO,
        units=frozenset(("x", "×")),
        divides=0,
        compute=lambda a, b: b / a,
    ),
    Formula(
        text="{0} is {1} over {2}",
        pattern=_RATIO,
        units=frozenset(("x", "×")),
        divides=1,
        compute=lambda a, b: a / b,
    ),
    Formula(
        text="{0} is {1} times {2}",
        pattern="total|tokens|flops|cost|budget",
        compute=lambda a, b: a * b,
        ordered=False,
        baseline=False,
    ),
    Formula(
        text="{0} is {1} and {2} together",
        pattern=f"{_SUM}|overall",
        falls=-1,
        compute=lambda a, b: a + b,
        ordered=False,
        baseline=False,
        unsaid=True,
        linear=True,
        adds=True,
    ),
    Formula(
        text="{0} is {1} less {2}",
        pattern=CHANGE,
        falls=1,
        compute=lambda a, b: a - b,
        pairs=False,
        linear=True,
    ),
    Formula(
        text="{0} is {2} less {1}, without its sign",
        pattern=CHANGE,
        compute=lambda a, b: abs(b - a),
        ordered=False,
        unsigned=True,
        linear=True,
    ),
    Formula(
        text="{0} is what {2} is above or below {1}, in per cent of it",
        pattern=f"{CHANGE}|{_PERCENT}",
        units=frozenset("%"),
        divides=0,
        compute=lambda a, b: abs(100 * (b - a) / a),
        express=lambda a, b: abs(100 * (b / a - 1)),
        unsigned=True,
    ),
)

#: Differences, in whichever direction a name may mean them.
DIFFERENCES = tuple(formula for formula in FORMULAS if formula.pattern == CHANGE)

#: Differences, and changes in per cent.
CHANGES = tuple(formula for formula in FORMULAS if formula.pattern.startswith(CHANGE))

#: Formulas of several neighbouring lines.
MEANS = Formula(text="{0} is the mean of {1}", pattern=MEAN, compute=_mean, express=mean, linear=True)
SUMS = Formula(text="{0} is the sum of {1}", pattern=_SUM, compute=_sum, express=total, linear=True, adds=True)
