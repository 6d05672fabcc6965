"""Draws a screen as SVG: every effect with its interval, and beside the half-normal law what stands out of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

#: The height of an effect's row and of the half-normal plot, and effects that are drawn at most.
ROW, NORMAL, MOST = 17, 220, 40


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
        effects = self._lay_out_effects(ABOVE)
        bottom, normal = effects["bottom"], dict[str, Any]()
        if len(self.half_normal) > 1:
            normal = self._lay_out_normal(bottom + BELOW + ABOVE)
            bottom = normal["bottom"]
        size = {"width": WIDTH, "height": bottom + BELOW, "left": LEFT, "right": RIGHT}
        panels = {"effects": effects, "normal": normal}
        return fill_template("screen.svg.j2", title=self.title, description=self.description, **size, **panels)

    @property
    def description(self) -> str:
        """What the picture shows, as text, for who cannot see it."""
        label = choose_digits([end for gain in self.gains for end in (gain.low, gain.high)])
        return " ".join(f"{self._describe(gain, label)}." for gain in self.gains) or "No effect is known."

    def _describe(self, gain: PicturedGain, label: Any) -> str:
        chosen = ", chosen" if gain.name in self.chosen else ""
        ends = f"{self.interval} interval {label(gain.low)} to {label(gain.high)}"
        return f"{gain.name}: gain {label(gain.middle)}, {ends}{chosen}"

    def _lay_out_effects(self, top: int) -> Mapping[str, Any]:
        ends = [end for gain in self.gains for end in (gain.low, gain.high)]
        axis, label = Axis.of([0.0, *ends]), choose_digits(ends)
        rows = [
            {
                "label": shorten(gain.name),
                "y": top + ROW * place + ROW // 2,
                "low": axis.x(gain.low),
                "middle": axis.x(gain.middle),
                "high": axis.x(gain.high),
                "line": "reach" if gain.name in self.chosen else "rule",
                "mark": self._mark(gain.name),
                "says": self._describe(gain, label),
            }
            for place, gain in enumerate(self.gains)
        ]
        rest = f"; {self.left_out} smaller ones left out" if self.left_out else ""
        metric = shorten(self.metric, 24)
        return {
            "head": f"gain in {metric}, {self.interval} intervals; better to the right, blue chosen{rest}",
            "top": top,
            "bottom": top + ROW * max(1, len(rows)),
            "ticks": [(axis.x(tick), axis.label(tick)) for tick in axis.ticks],
            "zero": axis.x(0.0),
            "rows": rows,
        }

    def _mark(self, name: str) -> str:
        return "candidate" if name in self.chosen else "baseline"

    def _lay_out_normal(self, top: int) -> dict[str, Any]:
        """Absolute effects over the quantiles: what does nothing lies along the dashed line through 0."""
        bottom = top + NORMAL
        farthest = max(quantile for _, quantile, _ in self.half_normal)
        axis = Axis(0.0, 1.08 * max(self.simultaneous, *(size for _, _, size in self.half_normal)) or 1.0)

        def x(quantile: float) -> float:
            return round(LEFT + 8 + quantile / farthest * (RIGHT - LEFT - 24), 1)

        def y(size: float) -> float:
            return round(bottom - axis.share(size) * NORMAL, 1)

        points = [
            {
                "x": x(quantile),
                "y": y(size),
                "mark": self._mark(name),
                "label": shorten(name) if name in self.chosen or size > self.simultaneous else "",
                "says": f"{name}: {axis.label(size)}",
            }
            for name, quantile, size in self.half_normal
        ]
        return {
            "head": "size of each effect beside the half-normal law; dashed: Lenth's line and margin",
            "top": top,
            "bottom": bottom,
            "ticks": [(y(tick), axis.label(tick)) for tick in axis.ticks],
            "margin": y(self.simultaneous),
            "margin_says": f"Lenth's simultaneous margin: {axis.label(self.simultaneous)}",
            "line": f"M{x(0.0)} {y(0.0)}L{x(farthest)} {y(self.pseudo_error * farthest)}",
            "points": points,
        }
