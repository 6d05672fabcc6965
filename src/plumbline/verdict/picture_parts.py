"""Holds what every picture of a verdict shares: its size, its axis, the digits of its numbers, and its template.

`fill_template` fills one of `templates/`; nothing but jinja2 is needed.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from rich.cells import cell_len

from plumbline.core.errors import visible

#: The picture in pixels: its width, and where names end and the data begins and ends.
WIDTH, LEFT, RIGHT = 700, 172, 676
#: What is above a panel (its heading) and below it (numbers).
ABOVE, BELOW = 44, 30
#: Cells of a name that fit next to the data.
NAME = 21


@cache
def _templates() -> Any:
    """The templates of pictures and pages: what they are filled with is escaped, and stands in one line, visibly."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("plumbline.verdict"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda each: clean(each) if isinstance(each, str) and not hasattr(each, "__html__") else each,
    )


def fill_template(template: str, **contents: Any) -> str:
    """Fill a template of `templates/`."""
    text: str = _templates().get_template(template).render(contents)
    return text


def clean(text: str) -> str:
    """Write others' words in one line, visibly, and without what an XML file cannot hold."""
    return re.sub("[\ufffe\uffff]", "\ufffd", re.sub(r"\s+", " ", visible(text)))


def shorten(text: str, cells: int = NAME) -> str:
    """Cut a text that takes more cells of a line than there are, with an ellipsis."""
    text = clean(text)
    if cell_len(text) <= cells:
        return text
    while cell_len(text) > cells - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


@dataclass(frozen=True)
class Axis:
    """An axis from left to right that holds these values, with some room next to them."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Axis:
        """The axis of these values; those that are not finite do not count."""
        finite = [value for value in values if math.isfinite(value)] or [0.0]
        low, high, most = min(finite), max(finite), sys.float_info.max
        # Halves, since the difference of two large numbers may be none.
        room = (high / 2 - low / 2) * 0.12 or abs(high) * 0.05 or 1.0
        return cls(max(low - room, -most), min(high + room, most))

    def share(self, value: float) -> float:
        """Where a value is between the ends, from 0 to 1; beyond them at the nearer one."""
        inside = min(max(value, self.low), self.high)
        return (inside / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def x(self, value: float) -> float:
        """Where it lies in the picture, in pixels from the left."""
        return round(LEFT + self.share(value) * (RIGHT - LEFT), 1)

    @cached_property
    def step(self) -> float:
        """The distance of two ticks: 1, 2 or 5 times a power of ten."""
        rough = (self.high / 2 - self.low / 2) / 2.5
        power = 10.0 ** math.floor(math.log10(rough))
        return power * min((1, 2, 5, 10), key=lambda times: abs(times - rough / power))

    @property
    def ticks(self) -> list[float]:
        """The values that are written next to the axis."""
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [at * self.step for at in range(first, last + 1)]

    def label(self, value: float) -> str:
        """Write a value with the digits that tell it from the next tick."""
        return _format_number(value, self.step)


def choose_digits(values: Iterable[float]) -> Any:
    """How numbers that stand next to each other are written: so that a hundredth of their spread is seen."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    spread = max(finite) / 2 - min(finite) / 2 or abs(finite[0]) / 2
    return lambda value: _format_number(value, spread / 50)


def _format_number(value: float, step: float) -> str:
    """A number with the digits that tell it from one a step away."""
    size = abs(value)
    if not math.isfinite(value):
        return "no limit"
    if size < step / 2 or not step:
        return "0" if size < step / 2 or not size else f"{value:.6g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    digits = math.floor(math.log10(size)) - math.floor(math.log10(step) + 1e-9) + 1
    far = digits > 6 or not 1e-4 <= size < 1e6
    return f"{value:.{min(17, max(1, digits))}g}" if far else f"{value:.{decimals}f}"
