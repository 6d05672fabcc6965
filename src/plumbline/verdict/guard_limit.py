"""Reads the limits of guards: what may not get worse, relative to the baseline, whatever a change gains."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.core.errors import PlumblineError

_LIMIT = re.compile(r"\s*([<>]=)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(x?)\s*")


@dataclass(frozen=True, slots=True)
class GuardLimit:
    """The limit of one measure or metric.

    Attributes:
        name: of the measure (`plumbline.verdict.evidence.MEASURES`), or of the metric.
        is_upper: whether what is guarded may not be above the limit; else it may not be below.
        amount: of a measure how many times the baseline's; of a metric the difference to the baseline's mean.
        is_ratio: whether it is a measure's.
    """

    name: str
    is_upper: bool
    amount: float
    is_ratio: bool

    @property
    def text(self) -> str:
        """The limit as files and records have it: ``<= 1.05x``, ``>= -0.002``."""
        return f"{'<=' if self.is_upper else '>='} {self.amount:.12g}{'x' if self.is_ratio else ''}"

    def allows(self, amount: float) -> bool:
        """Return whether an amount is within the limit; one that rounding alone tells from it is."""
        is_within = amount <= self.amount if self.is_upper else amount >= self.amount
        return is_within or math.isclose(amount, self.amount, rel_tol=1e-9)

    def describe(self) -> str:
        """State the limit: ``at most 1.05 times is allowed``, ``at most 0.002 lower is allowed``."""
        least = "at most" if self.is_upper else "at least"
        if self.is_ratio:
            return f"{least} {self.amount:g} times is {'allowed' if self.is_upper else 'required'}"
        if not self.amount:
            return f"no {'higher' if self.is_upper else 'lower'} one is allowed"
        direction = "higher" if self.amount > 0 else "lower"
        if self.is_upper == (self.amount > 0):
            return f"at most {abs(self.amount):g} {direction} is allowed"
        return f"at least {abs(self.amount):g} {direction} is required"


def parse_guard_limit(name: str, text: str, place: str) -> GuardLimit:
    """Read a limit as a file states it; `place`: its file and key.

    Raises:
        PlumblineError: it is none.
    """
    match = _LIMIT.fullmatch(text)
    amount = float(match[2]) if match else math.nan
    if match is None or not math.isfinite(amount) or (match[3] and amount <= 0):
        raise PlumblineError(
            f"{place}: {text!r} is no limit; write '<= 1.05x' (of a measure, times the baseline's), or '>= -0.002' (of "
            "a metric, in its units, beside the baseline's mean)"
        )
    return GuardLimit(name, match[1] == "<=", amount, bool(match[3]))


def read_guards(guards: Mapping[str, str]) -> list[GuardLimit]:
    """Read the limits that a question holds, by name."""
    return [parse_guard_limit(name, text, f"guard.{name}") for name, text in sorted(guards.items())]


def write_guards(guards: Mapping[str, str]) -> str:
    """Write guards as a rule has them: ``memory_bytes <= 1.05x, val_acc >= -0.002``."""
    return ", ".join(f"{name} {text}" for name, text in sorted(guards.items()))
