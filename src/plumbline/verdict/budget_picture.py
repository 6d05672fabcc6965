"""Draws how a gain goes on with the budget of a run, as SVG: the gain at each budget, its interval, and the slope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.verdict.picture import PicturedGain
from plumbline.verdict.picture_parts import (
    ABOVE,
    BELOW,
    LEFT,
    RIGHT,
    WIDTH,
    Axis,
    choose_digits,
    fill_template,
    shorten,
)

#: The panel's height, and the room between its sides and the first and last budget, in pixels.
HEIGHT, MARGIN = 190, 48


@dataclass(frozen=True, kw_only=True)
class BudgetPicture:
    """Everything that is drawn: gains by budget, each named by its own, with the line of the slope through them.

    Attributes:
        doublings: log2 of each budget, rising.
        line: the height of the line of the slope at the first and at the last budget.
        interval: the level of the intervals.
    """

    title: str
    metric: str
    interval: str
    doublings: Sequence[float]
    gains: Sequence[PicturedGain]
    line: tuple[float, float] | None

    def svg(self) -> str:
        """Draw it."""
        top, bottom = ABOVE, ABOVE + HEIGHT
        ends = [end for gain in self.gains for end in (gain.low, gain.middle, gain.high)]
        axis, label = Axis.of([0.0, *ends]), choose_digits(ends)

        def y(value: float) -> float:
            return round(bottom - axis.share(value) * HEIGHT, 1)

        span = self.doublings[-1] - self.doublings[0] if self.gains else 1.0
        room = RIGHT - LEFT - 2 * MARGIN
        points = [
            {
                "x": round(LEFT + MARGIN + (at - self.doublings[0]) / span * room, 1),
                "low": y(gain.low),
                "middle": y(gain.middle),
                "high": y(gain.high),
                "label": shorten(gain.name, 12),
                "says": self._describe(gain, label),
            }
            for at, gain in zip(self.doublings, self.gains)
        ]
        line = ""
        if self.line is not None and points:
            line = f"M{points[0]['x']} {y(self.line[0])}L{points[-1]['x']} {y(self.line[1])}"
        return fill_template(
            "budgets.svg.j2",
            title=self.title,
            description=self.description,
            head=f"gain in {shorten(self.metric, 24)} by budget, {self.interval} intervals, and slope; better upwards",
            width=WIDTH,
            height=bottom + BELOW,
            left=LEFT,
            right=RIGHT,
            top=top,
            bottom=bottom,
            ticks=[(y(tick), axis.label(tick)) for tick in axis.ticks],
            zero=y(0.0),
            line=line,
            points=points,
        )

    @property
    def description(self) -> str:
        """What the picture shows, as text, for who cannot see it."""
        label = choose_digits([end for gain in self.gains for end in (gain.low, gain.middle, gain.high)])
        return " ".join(f"{self._describe(gain, label)}." for gain in self.gains) or "No gain is known."

    def _describe(self, gain: PicturedGain, label: object) -> str:
        assert callable(label)
        ends = f"{self.interval} interval {label(gain.low)} to {label(gain.high)}"
        return f"at {gain.name}: gain {label(gain.middle)}, {ends}"
