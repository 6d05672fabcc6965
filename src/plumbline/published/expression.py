"""Computes with printed numbers, so that a check reads like the sentence it checks: `(score - mean) / sigma`.

An expression carries its value at the printed inputs, its range over everything that rounds to them, the inputs and
cells it was made from, and its own text with no bracket too many. Its range is the natural interval extension: it holds
every value that the inputs' roundings allow, and is exact where each rounded input stands once. Where one stands twice
it is wider (`x - x` is an interval around 0): write it once, or as a named function.

`x > y` is 1, 0, or the interval from 0 to 1 where rounding leaves it open. Operators treat several numbers in one
expression (a column) one by one. Needs neither pandas nor torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TypeAlias

from mpmath import iv

from plumbline.core.errors import PlumblineError
from plumbline.published.interval_arithmetic import SLACK, Cell, Interval, high, low, span

#: How tightly a text holds together, the loosest first.
COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(6)

#: Results at the printed inputs, and over everything that rounds to them; one for each of several numbers.
Values = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class ExpressionInput:
    """An input of an expression: its name, how it is printed, and the printed cells that it was read from."""

    name: str
    shown: str
    cells: tuple[Cell, ...] = ()


class ExpressionOperand:
    """Base of what operators and named functions take: a printed number, a column of them, or an expression."""

    __slots__ = ()

    def expression(self) -> Expression:
        """Turn the operand into an expression."""
        raise NotImplementedError

    def __add__(self, other: Given) -> Expression:
        return _join("+", self, other)

    def __radd__(self, other: Given) -> Expression:
        return _join("+", other, self)

    def __sub__(self, other: Given) -> Expression:
        return _join("-", self, other)

    def __rsub__(self, other: Given) -> Expression:
        return _join("-", other, self)

    def __mul__(self, other: Given) -> Expression:
        return _join("*", self, other)

    def __rmul__(self, other: Given) -> Expression:
        return _join("*", other, self)

    def __truediv__(self, other: Given) -> Expression:
        return _join("/", self, other)

    def __rtruediv__(self, other: Given) -> Expression:
        return _join("/", other, self)

    def __pow__(self, other: Given) -> Expression:
        return _join("**", self, other)

    def __rpow__(self, other: Given) -> Expression:
        return _join("**", other, self)

    def __lt__(self, other: Given) -> Expression:
        return _join("<", self, other)

    def __gt__(self, other: Given) -> Expression:
        return _join(">", self, other)

    def __neg__(self) -> Expression:
        operand = self.expression()
        # The sign of a product is that of its first factor.
        binding = PRODUCT if operand.binding == PRODUCT else SIGN
        return _apply_elementwise(operator.neg, [operand], f"-{_bracket(operand, PRODUCT)}", binding)

    def __abs__(self) -> Expression:
        operand = self.expression()
        return _apply_elementwise(abs, [operand], f"abs({operand.text})", ATOM)


#: What may stand next to an operator. A plain number is a constant: exact, and without a cell.
Given: TypeAlias = "ExpressionOperand | int | float | Sequence[Given]"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Expression(ExpressionOperand):
    """A number, or several, with its text and the inputs that it was computed from.

    Attributes:
        text: the formula as it is written in the audit's row.
        printed: its value at the inputs as printed.
        ranges: the range of its value over all inputs that round to the printed ones.
        binding: how tightly the text binds, which decides on brackets around it.
        inputs: the inputs, each once, in the order of the text.
        several: it stands for a list of numbers, even if the list has one.
        spans: its value is a range between two ends, even for exact inputs.
    """

    text: str
    printed: Values
    ranges: Values
    binding: int = ATOM
    inputs: tuple[ExpressionInput, ...] = ()
    several: bool = False
    spans: bool = False

    def expression(self) -> Expression:
        """Give back this expression itself."""
        return self

    def one(self) -> tuple[Interval, Interval]:
        """Its value at the printed inputs, and its range over everything that rounds to them.

        Raises:
            PlumblineError: it stands for several numbers.
        """
        if self.several:
            raise PlumblineError(f"{self.text} is a list of numbers; count it, add it up or take one of it")
        return self.printed[0], self.ranges[0]


def lift(operand: Given) -> Expression:
    """Turn anything that may stand next to an operator (a number, an operand, a list of them) into an expression."""
    if isinstance(operand, ExpressionOperand):
        return operand.expression()
    if isinstance(operand, int | float):
        value = (iv.mpf(str(operand)),)
        return Expression(text=str(operand), printed=value, ranges=value, binding=ATOM if operand >= 0 else SIGN)
    parts = [lift(item) for item in operand]
    return Expression(
        text=f"[{', '.join(part.text for part in parts)}]",
        printed=tuple(value for part in parts for value in part.printed),
        ranges=tuple(value for part in parts for value in part.ranges),
        inputs=_collect_inputs(parts),
        several=True,
        spans=any(part.spans for part in parts),
    )


def exceeds(x: Interval, y: Interval) -> Interval:
    """Whether x > y: 1, 0, or the interval from 0 to 1 where both can be; 0 for numbers printed as equal."""
    slack = SLACK * max(abs(low(x)), abs(high(x)), abs(low(y)), abs(high(y)))
    return span(low(x) > high(y) + slack, high(x) > low(y) + slack)


def _power(base: Interval, exponent: Interval) -> Interval:
    is_whole = low(exponent) == high(exponent) == round(low(exponent))
    return base ** int(low(exponent)) if is_whole else base**exponent


@dataclass(frozen=True, slots=True)
class _Operator:
    """What a sign does, how tightly it binds, and how tightly either side of it must hold together without brackets."""

    apply: Callable[[Interval, Interval], Interval]
    binding: int
    left: int
    right: int


_OPERATORS = {
    "+": _Operator(operator.add, SUM, left=SUM, right=SUM),
    "-": _Operator(operator.sub, SUM, left=SUM, right=PRODUCT),
    "*": _Operator(operator.mul, PRODUCT, left=PRODUCT, right=PRODUCT),
    "/": _Operator(operator.truediv, PRODUCT, left=PRODUCT, right=SIGN),
    "**": _Operator(_power, POWER, left=ATOM, right=SIGN),
    ">": _Operator(exceeds, COMPARISON, left=SUM, right=SUM),
    "<": _Operator(lambda x, y: exceeds(y, x), COMPARISON, left=SUM, right=SUM),
}


def _bracket(expression: Expression, least: int) -> str:
    return expression.text if expression.binding >= least else f"({expression.text})"


def _join(sign: str, first: Given, second: Given) -> Expression:
    left, right, operation = lift(first), lift(second), _OPERATORS[sign]
    text = f"{_bracket(left, operation.left)} {sign} {_bracket(right, operation.right)}"
    return _apply_elementwise(operation.apply, [left, right], text, operation.binding)


def _apply_elementwise(
    operation: Callable[..., Interval], operands: Sequence[Expression], text: str, binding: int
) -> Expression:
    """An operation on each number of its operands; a single number goes with each of several."""
    lengths = {len(operand.printed) for operand in operands if operand.several}
    if len(lengths) > 1:
        raise PlumblineError(f"{text}: lists of {' and '.join(map(str, sorted(lengths)))} numbers do not pair up")
    count = lengths.pop() if lengths else 1

    def apply_each(values: Sequence[Values]) -> Values:
        columns = [
            numbers_of_operand if len(numbers_of_operand) == count else numbers_of_operand * count
            for numbers_of_operand in values
        ]
        return tuple(operation(*numbers) for numbers in zip(*columns, strict=True))

    return Expression(
        text=text,
        printed=apply_each([operand.printed for operand in operands]),
        ranges=apply_each([operand.ranges for operand in operands]),
        binding=binding,
        inputs=_collect_inputs(operands),
        several=any(operand.several for operand in operands),
        spans=any(operand.spans for operand in operands),
    )


def _collect_inputs(operands: Sequence[Expression]) -> tuple[ExpressionInput, ...]:
    return tuple(dict.fromkeys(entry for operand in operands for entry in operand.inputs))


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A named function: what it means, for the reader, the module that defines it, its parameters, by name, and what
    makes an expression of its operands."""

    meaning: str
    module: str
    parameters: tuple[str, ...]
    call: Callable[..., Expression]


#: The named functions, by name: all that an expression may call.
FUNCTIONS: dict[str, NamedFunction] = {}


def audit_function(
    meaning: str, *, spans: bool = False
) -> Callable[[Callable[..., Interval]], Callable[..., Expression]]:
    """Turn a function of intervals (and lists of them) into one of expressions, registered under its own name.

    Args:
        meaning: what it gives, as the page of the audit prints it.
        spans: its value is a range between two ends, even for exact inputs.

    Raises:
        PlumblineError: the name is taken, by a function of the audit's or of another study's.
    """

    def register(compute: Callable[..., Interval]) -> Callable[..., Expression]:
        name = compute.__name__
        # The module of a study is loaded anew where another project has a study of that name.
        if name in FUNCTIONS and FUNCTIONS[name].module != compute.__module__:
            raise PlumblineError(f"two audit functions are called {name!r}; rename that of {compute.__module__}")

        def call(*arguments: Given) -> Expression:
            operands = [lift(argument) for argument in arguments]

            def result(values: Sequence[Values]) -> Values:
                inputs = [
                    list(value) if operand.several else value[0]
                    for operand, value in zip(operands, values, strict=True)
                ]
                return (iv.mpf(compute(*inputs)),)

            return Expression(
                text=f"{name}({', '.join(operand.text for operand in operands)})",
                printed=result([operand.printed for operand in operands]),
                ranges=result([operand.ranges for operand in operands]),
                inputs=_collect_inputs(operands),
                spans=spans or any(operand.spans for operand in operands),
            )

        FUNCTIONS[name] = NamedFunction(meaning, compute.__module__, tuple(signature(compute).parameters), call)
        return call

    return register


def select_named_inputs(expression: Expression) -> list[ExpressionInput]:
    """The inputs of an expression that have a name; constants and numbers that its text writes out have none."""
    return [entry for entry in expression.inputs if entry.name]


def collect_cells(expression: Expression) -> set[Cell]:
    """Every printed cell that an expression reads."""
    return {cell for entry in expression.inputs for cell in entry.cells}
