"""Draws a screen as SVG: every effect with its interval, and beside the half-normal law what stands out of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.verdict.picture import PicturedGain
from plumbline.verdict.picture_parts import (
    ABOVE,
    BELOW,
    LEFT,
    RIGHT,
    Axis,
    choose_digits,
    draw_columns,
    draw_dot,
    draw_head,
    draw_heights,
    draw_left,
    draw_path,
    draw_picture,
    draw_text,
    shorten,
)

#: The height of an effect's row and of the half-normal plot, and effects that are drawn at most.
ROW, NORMAL, MOST = 17, 220, 40
#: Effects that a half-normal plot needs: the margin of fewer is many times any of them.
FEWEST = 4


@dataclass(frozen=True, kw_only=True)
class ScreenPicture:
    """Everything that is drawn.

    Attributes:
        gains: of the effects, the largest first.
        chosen: names of those that were chosen, which are coloured.
        half_normal: name, quantile and absolute effect in sigma, the smallest first.
        pseudo_error, simultaneous: Lenth's, in the same measure.
        left_out: effects between the drawn ones, which the table has.
    """

    title: str
    metric: str
    interval: str
    gains: Sequence[PicturedGain]
    chosen: frozenset[str]
    half_normal: Sequence[tuple[str, float, float]]
    pseudo_error: float
    simultaneous: float
    left_out: int = 0

    def svg(self) -> str:
        """Draw it."""
        bottom = ABOVE + ROW * max(1, len(self.gains))
        elements = self._draw_effects(ABOVE, bottom)
        if self.has_half_normal:
            top, bottom = bottom + BELOW + ABOVE, bottom + BELOW + ABOVE + NORMAL
            elements += self._draw_normal(top, bottom)
        elif self.half_normal:
            bottom += BELOW
            why = f"No half-normal plot: it takes {FEWEST} effects to tell one from the rest."
            elements.append(draw_text(16, bottom + 12, why, kind="small"))
        return draw_picture(self.title, self.description, bottom + BELOW, elements)

    @property
    def has_half_normal(self) -> bool:
        """Whether there are effects enough for the half-normal plot."""
        return len(self.half_normal) >= FEWEST

    @property
    def description(self) -> str:
        """What the picture shows, as text, for who cannot see it."""
        label = choose_digits([end for gain in self.gains for end in (gain.low, gain.high)])
        return " ".join(f"{self._describe(gain, label)}." for gain in self.gains) or "No effect is known."

    def _describe(self, gain: PicturedGain, label: Any) -> str:
        suffix = ", chosen" if gain.name in self.chosen else ""
        ends = f"{self.interval} interval {label(gain.low)} to {label(gain.high)}"
        return f"{gain.name}: gain {label(gain.middle)}, {ends}{suffix}"

    def _draw_effects(self, top: int, bottom: int) -> list[str]:
        ends = [end for gain in self.gains for end in (gain.low, gain.high)]
        axis, label = Axis.of([0.0, *ends]), choose_digits(ends)
        tail = f"; {self.left_out} smaller ones left out" if self.left_out else ""
        head = f"gain in {shorten(self.metric, 14)}, {self.interval} intervals; better to the right, blue chosen{tail}"
        rule = draw_path("rule", f"M{axis.x(0.0)} {top}V{bottom}")
        elements = [draw_head(top, head), *draw_columns(axis, top, bottom), rule]
        for place, gain in enumerate(self.gains):
            y, text = top + ROW * place + ROW // 2, self._describe(gain, label)
            line = "reach" if gain.name in self.chosen else "rule"
            elements += [
                draw_left(y + 4, shorten(gain.name)),
                draw_path(line, f"M{axis.x(gain.low)} {y}H{axis.x(gain.high)}", text),
                draw_dot(self._mark(gain.name), axis.x(gain.middle), y, text, radius=4),
            ]
        return elements

    def _mark(self, name: str) -> str:
        return "candidate" if name in self.chosen else "baseline"

    def _draw_normal(self, top: int, bottom: int) -> list[str]:
        """Absolute effects over the quantiles: what does nothing lies along the dashed line through 0."""
        farthest = max(quantile for _, quantile, _ in self.half_normal)
        axis = Axis(0.0, 1.08 * max(self.simultaneous, *(size for _, _, size in self.half_normal)) or 1.0)

        def x(quantile: float) -> float:
            return round(LEFT + 8 + quantile / farthest * (RIGHT - LEFT - 24), 1)

        def y(size: float) -> float:
            return axis.y(size, top, bottom)

        margin = f"Lenth's simultaneous margin: {axis.label(self.simultaneous)}"
        elements = [
            draw_head(top, "size of each effect beside the half-normal law; dashed: Lenth's line and margin"),
            *draw_heights(axis, top, bottom),
            draw_path("asked", f"M{LEFT} {y(self.simultaneous)}H{RIGHT}", margin),
            draw_path("asked", f"M{x(0.0)} {y(0.0)}L{x(farthest)} {y(self.pseudo_error * farthest)}"),
        ]
        for name, quantile, size in self.half_normal:
            text = f"{name}: {axis.label(size)}"
            elements.append(draw_dot(self._mark(name), x(quantile), y(size), text, radius=4))
            if name in self.chosen or size > self.simultaneous:
                label = draw_text(x(quantile) - 8, y(size) + 4, shorten(name), kind="small", anchor="end")
                elements.append(label)
        law = draw_text(RIGHT, bottom + 15, "quantile of the half-normal law", kind="small", anchor="end")
        return [*elements, law]
