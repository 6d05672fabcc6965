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
    Axis,
    choose_digits,
    draw_below,
    draw_dot,
    draw_head,
    draw_heights,
    draw_left,
    draw_path,
    draw_picture,
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
            return axis.y(value, top, bottom)

        span = self.doublings[-1] - self.doublings[0] if self.gains else 1.0
        room = RIGHT - LEFT - 2 * MARGIN
        places = [round(LEFT + MARGIN + (at - self.doublings[0]) / span * room, 1) for at in self.doublings]
        head = f"gain in {shorten(self.metric, 14)} by budget, {self.interval} intervals, and slope; better upwards"
        rule = draw_path("rule", f"M{LEFT} {y(0.0)}H{RIGHT}")
        elements = [draw_head(top, head), *draw_heights(axis, top, bottom), rule]
        if self.line is not None and self.gains:
            begin, end = map(y, self.line)
            elements.append(draw_path("asked", f"M{places[0]} {begin}L{places[len(self.gains) - 1]} {end}"))
        for x, gain in zip(places, self.gains):
            low, high, text = y(gain.low), y(gain.high), self._describe(gain, label)
            elements += [
                draw_path("reach", f"M{x} {low}V{high}M{x - 6} {low}h12M{x - 6} {high}h12", text),
                draw_dot("candidate", x, y(gain.middle), text),
                draw_below(x, bottom, shorten(gain.name, 7)),
            ]
        elements.append(draw_left(bottom + 15, "budget"))
        return draw_picture(self.title, self.description, bottom + BELOW, elements)

    @property
    def description(self) -> str:
        """What the picture shows, as text, for who cannot see it."""
        label = choose_digits([end for gain in self.gains for end in (gain.low, gain.middle, gain.high)])
        return " ".join(f"{self._describe(gain, label)}." for gain in self.gains) or "No gain is known."

    def _describe(self, gain: PicturedGain, label: object) -> str:
        assert callable(label)
        ends = f"{self.interval} interval {label(gain.low)} to {label(gain.high)}"
        return f"at {gain.name}: gain {label(gain.middle)}, {ends}"
