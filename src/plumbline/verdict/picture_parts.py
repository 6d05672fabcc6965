"""Draws what the pictures of verdicts share: frame, axes, texts and dots, and the digits of their numbers.

Pictures are joined from lines of SVG: a template engine would take longer to load than a verdict takes.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import escape

from plumbline.core.errors import visible

#: The picture in pixels: its width, and where names end and the data begins and ends.
WIDTH, LEFT, RIGHT = 700, 172, 676
#: What is above a panel (its heading) and below it (numbers).
ABOVE, BELOW = 44, 30
#: The letters of a narrow picture, in which they are largest (picture_style.svg), in pixels.
LETTER, SMALL = 15, 14
#: Widths in letters: of a name and of what is small below it, next to the data, and of a heading, which is bold.
NAME, BELOW_NAME, HEAD = (LEFT - 12) / LETTER, (LEFT - 12) / SMALL, (WIDTH - 16) / LETTER / 1.12


def draw_picture(title: str, description: str, height: float, elements: Iterable[str]) -> str:
    """Write the file of a picture from its elements, a line each, in the colours of a light and a dark page."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
        f'<title id="title">{write_text(title)}</title>',
        f'<desc id="description">{write_text(description)}</desc>',
        read_style(),
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        *elements,
        "</svg>",
    ]
    return "\n".join(lines)


def read_style() -> str:
    """The style sheet of every picture."""
    return (Path(__file__).parent / "templates" / "picture_style.svg").read_text("utf-8").rstrip()


def draw_text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "") -> str:
    """Draw a text; `anchor`: which of its ends is at `x`, "end" or "middle" if not its start."""
    begin = f'<text class="{kind}"' if kind else "<text"
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'{begin} x="{x}" y="{y}"{end}>{write_text(text)}</text>'


def draw_head(top: float, text: str) -> str:
    """Draw the heading of a panel, on two lines where one would be too long in a narrow picture."""
    text = clean(text)
    if measure(text) <= HEAD:
        return draw_text(16, top - 14, text, kind="head")
    places = [place for place, sign in enumerate(text) if sign == " " and measure(text[:place]) <= HEAD]
    place = max(places, key=lambda place: (text[place - 1] == ";", place), default=len(text))
    lines = [
        draw_text(16, top - 30, text[:place], kind="head"),
        draw_text(16, top - 13, text[place + 1 :], kind="head"),
    ]
    return "\n".join(lines)


def draw_path(kind: str, line: str, label: str = "") -> str:
    """Draw a line; `label` is shown by a pointer on it."""
    return f'<path class="{kind}" d="{line}"' + (f"><title>{write_text(label)}</title></path>" if label else "/>")


def draw_dot(kind: str, x: float, y: float, label: str = "", *, radius: float = 5, pale: bool = False) -> str:
    """Draw a value as a dot; `label` is shown by a pointer on it."""
    dot = f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}"' + ' fill-opacity=".35"' * pale
    return dot + (f"><title>{write_text(label)}</title></circle>" if label else "/>")


def draw_columns(axis: Axis, top: float, bottom: float) -> list[str]:
    """Draw the ticks of an axis from left to right, with their numbers below."""
    lines = []
    for tick in axis.ticks:
        x = axis.x(tick)
        lines += [draw_path("grid", f"M{x} {top}V{bottom}"), draw_below(x, bottom, axis.label(tick))]
    return lines


def draw_heights(axis: Axis, top: float, bottom: float) -> list[str]:
    """Draw the ticks of an axis from below to above, with their numbers on the left."""
    lines = []
    for tick in axis.ticks:
        y = axis.y(tick, top, bottom)
        lines += [draw_path("grid", f"M{LEFT} {y}H{RIGHT}"), draw_left(y + 4, axis.label(tick))]
    return lines


def draw_below(x: float, bottom: float, text: str) -> str:
    """Draw what stands below a panel at a place."""
    return draw_text(x, bottom + 15, text, kind="small", anchor="middle")


def draw_left(y: float, text: str, kind: str = "small") -> str:
    """Draw what stands on the left of a panel at a height."""
    return draw_text(LEFT - 12, y, text, kind=kind, anchor="end")


def write_text(text: str) -> str:
    """Write others' words as text of an XML file, in one line and visibly."""
    return str(escape(clean(text)))


def clean(text: str) -> str:
    """Write others' words in one line, visibly, and without what an XML file cannot hold."""
    return re.sub(r"\s+", " ", visible(text))


def shorten(text: str, width: float = NAME) -> str:
    """Cut a text that is wider than so many letters, with an ellipsis."""
    text = clean(text)
    if measure(text) <= width:
        return text
    while measure(text) > width - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def measure(text: str) -> float:
    """How wide a text is in letters (em), in the widest font of the pictures' style."""
    return sum(map(_measure_sign, text))


def _measure_sign(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in "WF" or sign in "mwMW@%…—":
        return 1.0
    if unicodedata.combining(sign):
        return 0.0
    if sign in "ijlftrI.,:;'|!()[]/- ":
        return 0.36
    return 0.72 if sign.isupper() else 0.61


@dataclass(frozen=True)
class Axis:
    """An axis from left to right that holds these values, with some room next to them."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Axis:
        """The axis of these values; those that are not finite do not count."""
        finite = [value for value in values if math.isfinite(value)] or [0.0]
        low, high, limit = min(finite), max(finite), sys.float_info.max
        # Halves, since the difference of two large numbers may be none.
        room = (high / 2 - low / 2) * 0.12 or abs(high) * 0.05 or 1.0
        return cls(max(low - room, -limit), min(high + room, limit))

    def share(self, value: float) -> float:
        """Where a value is between the ends, from 0 to 1; beyond them at the nearer one."""
        inside = min(max(value, self.low), self.high)
        return (inside / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def x(self, value: float) -> float:
        """Where it lies in the picture, in pixels from the left."""
        return round(LEFT + self.share(value) * (RIGHT - LEFT), 1)

    def y(self, value: float, top: float, bottom: float) -> float:
        """How high it lies between the bottom and the top of a panel, in pixels from above."""
        return round(bottom - self.share(value) * (bottom - top), 1)

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
