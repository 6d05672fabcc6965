"""Reads how a trainer is given its budget: words of its command or a variable, whose numbers can be multiplied.

`--max-steps {2000} --decay-steps {2000}`, or `env:STEPS={2000}`: numbers in braces are those of the budget that is
called 1x, and everything else stays as it is.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from fractions import Fraction

from plumbline.core.errors import PlumblineError, UsageError

#: A variable of the environment begins with this, as that of a seed does.
ENVIRONMENT = "env:"
_NUMBER = re.compile(r"\{([^{}]*)\}")
_WHOLE = re.compile(r"[1-9]\d{0,14}")
_MULTIPLE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?|\d{1,6}/\d{1,6})x")
#: Budgets that are compared at most.
MOST = 8
EXAMPLE = 'budget = "--max-steps {2000}"'


@dataclass(frozen=True, kw_only=True, slots=True)
class RunBudget:
    """A budget as a run is given it.

    Attributes:
        label: how many times the one of 1x it is: ``2x``.
        text: words of the command, or ``env:NAME=VALUE``, with its numbers filled in.
        times: how many times the one of 1x it is.
    """

    label: str
    text: str
    times: float

    @property
    def flags(self) -> tuple[str, ...]:
        """The words that the command is given; none where it is a variable."""
        return () if self.text.startswith(ENVIRONMENT) else tuple(shlex.split(self.text))

    @property
    def variables(self) -> dict[str, str]:
        """The variable that gives it, and its value; none where it is words of the command."""
        if not self.text.startswith(ENVIRONMENT):
            return {}
        name, _, value = self.text.removeprefix(ENVIRONMENT).partition("=")
        return {name: value}


def parse_multiples(text: str) -> tuple[Fraction, ...]:
    """Read `1x,2x,4x`: how many times the budget of 1x, from the smallest on.

    Raises:
        UsageError: it is no such list, names a budget twice, or fewer than two.
    """
    parts = [part.strip() for part in text.split(",")]
    example = "write two or more budgets, such as 1x,2x,4x"
    if wrong := [part for part in parts if not _MULTIPLE.fullmatch(part) or not re.search("[1-9]", part)]:
        raise UsageError(f"--at {text!r}: {wrong[0]!r} is not a multiple of a budget; {example}")
    try:
        multiples = [Fraction(part.removesuffix("x")) for part in parts]
    except ZeroDivisionError:
        raise UsageError(f"--at {text!r}: a multiple is divided by 0; {example}") from None
    if not all(multiples) or len(set(multiples)) < len(multiples):
        raise UsageError(f"--at {text!r} names a budget twice, or one of nothing; {example}")
    if not 2 <= len(multiples) <= MOST:
        count = "one budget, and a slope needs two" if len(multiples) == 1 else f"more than {MOST} budgets"
        raise UsageError(f"--at {text!r} names {count}; {example}")
    return tuple(sorted(multiples))


def format_multiple(multiple: Fraction) -> str:
    """Write how many times a budget: ``2x``, ``0.5x``, ``1/3x``."""
    exact = f"{float(multiple):g}"
    return f"{exact if Fraction(exact) == multiple else multiple}x"


def multiply_whole(number: int, multiple: Fraction, place: str) -> int:
    """Multiply a number of steps, or of whatever is counted.

    Raises:
        UsageError: the product is not a whole number.
    """
    product = number * multiple
    if product.denominator != 1:
        raise UsageError(
            f"--at {format_multiple(multiple)}: {place} has {number}, of which that is {float(product):g} and not a "
            "whole number; name another multiple, or another number for 1x"
        )
    return int(product)


def list_numbers(budget: str) -> list[int]:
    """List the numbers of a declared budget; empty if it has none, or one that is not a whole number above 0."""
    numbers = _NUMBER.findall(budget)
    return [int(number) for number in numbers] if all(_WHOLE.fullmatch(number) for number in numbers) else []


def fill_budget(budget: str, multiple: Fraction, place: str) -> RunBudget:
    """Multiply the numbers of a declared budget.

    Args:
        budget: as `run.budget` declares it.
        multiple: how many times.
        place: the key and its file, as an error names them.

    Raises:
        UsageError: a product is not a whole number.
    """

    def multiply(match: re.Match[str]) -> str:
        return str(multiply_whole(int(match[1]), multiple, place))

    filled = _NUMBER.sub(multiply, budget)
    return RunBudget(label=format_multiple(multiple), text=filled, times=float(multiple))


def explain_wrong_budget(budget: str) -> str:
    """Say what is wrong with a declared budget, and what to write; empty if nothing is."""
    if not list_numbers(budget) or re.search(r"[{}]", _NUMBER.sub("", budget)):
        return (
            f"{budget!r} has no whole number in braces, or another one: they say what is multiplied; write {EXAMPLE}, "
            "or 'env:STEPS={2000}'"
        )
    if budget.startswith(ENVIRONMENT) and not re.fullmatch(r"env:[A-Za-z_]\w*=\{\d+\}", budget):
        return f"{budget!r} is not a variable with one number; write 'env:STEPS={{2000}}'"
    try:
        shlex.split(budget)
    except ValueError as error:
        return f"{budget!r} has {str(error).lower()}"
    return "" if "\0" not in budget else "it has a null character, which no command can; take it out"


def require_budget(budget: str, place: str) -> str:
    """Return a declared budget.

    Raises:
        PlumblineError: none is declared.
    """
    if not budget:
        raise PlumblineError(
            f"--at: {place} does not say how a run is given its budget; write there {EXAMPLE}, where the command takes "
            "its number of steps so (or 'env:STEPS={2000}'): the number in braces is 1x"
        )
    return budget
