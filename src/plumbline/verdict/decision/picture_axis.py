"""Places values along an axis of a picture, and writes those that stand beside it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

#: The picture in pixels: its width, and where names end and the data begins and ends.
WIDTH, LEFT, RIGHT = 700, 172, 676


@dataclass(frozen=True)
class Axis:
    """An axis from left to right that holds these values, with some room beside them."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Axis:
        """The axis of these values; those that are not finite do not count."""
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high, most = min(known), max(known), sys.float_info.max
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
        """The values that are written beside the axis."""
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [at * self.step for at in range(first, last + 1)]

    def label(self, value: float) -> str:
        """Write a value with the digits that tell it from the next tick."""
        return _written(value, self.step)


def labels(values: Iterable[float]) -> Any:
    """How numbers that stand beside each other are written: so that a hundredth of their spread is seen."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    spread = max(known) / 2 - min(known) / 2 or abs(known[0]) / 2
    return lambda value: _written(value, spread / 50)


def _written(value: float, step: float) -> str:
    """A number with the digits that tell it from one a step away."""
    size = abs(value)
    if not math.isfinite(value):
        return "no limit"
    if size < step / 2 or not step:
        return "0" if size < step / 2 or not size else f"{value:.6g}"
    digits = math.floor(math.log10(size)) - math.floor(math.log10(step) + 1e-9) + 1
    return f"{value:.{min(17, max(1, digits))}g}" if digits > 6 or not 1e-4 <= size < 1e6 else _decimals(value, step)


def _decimals(value: float, step: float) -> str:
    return f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
