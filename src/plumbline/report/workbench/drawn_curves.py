"""Draws curves of runs over the band of the baseline's, as a picture for everybody and as numbers for the script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from plumbline.report.run_curve import Band, TrainingCurveLine, TrainingCurvePicture
from plumbline.report.workbench.printed_curves import Point, span_curves

#: Digits of a number on a page: more than a picture shows.
DIGITS = 5
#: Colours of lines, after which they begin again (`report.css`).
COLOURS = 8


@dataclass(frozen=True, kw_only=True)
class CurveOfRun:
    """A run's curve of one quantity: its name in the picture, and its page."""

    name: str
    href: str
    points: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class DrawnCurves:
    """One quantity of several runs over its steps, and the span of the baseline's runs where there are any."""

    quantity: str
    curves: Sequence[CurveOfRun]
    baseline: str = ""
    baseline_curves: Sequence[Sequence[Point]] = ()

    @property
    def title(self) -> str:
        """Its heading."""
        return f"{self.quantity} of {'its run' if len(self.curves) == 1 else f'each of {len(self.curves)} runs'}"

    @property
    def note(self) -> str:
        """What is in it."""
        runs = len(self.baseline_curves)
        band = f" The band spans {runs} runs of {self.baseline}, the line in it is their mean." if runs > 1 else ""
        return f"Each line is a run.{band} Drag over steps to see them closer."

    @property
    def svg(self) -> Markup:
        """The picture, for whoever reads without a script."""
        spans = span_curves(self.baseline_curves)
        lines = [
            TrainingCurveLine(name=f"c{place % COLOURS}", points=curve.points)
            for place, curve in enumerate(self.curves)
        ]
        steps = [*(step for curve in self.curves for step, _ in curve.points), *(span[0] for span in spans)]
        return TrainingCurvePicture(
            title=self.title,
            lines=lines,
            steps=max(steps, default=0.0),
            description=f"{self.title}, over steps",
            band=Band(spans) if len(self.baseline_curves) > 1 else None,
        ).svg()

    @property
    def data(self) -> Markup:
        """The numbers."""
        chart: dict[str, Any] = {"title": self.title, "x": "step", "y": self.quantity, "note": self.note, "less": True}
        chart["lines"] = [{"name": each.name, "href": each.href} | number_line(each.points) for each in self.curves]
        chart["band"] = number_band(self.baseline, self.baseline_curves)
        return embed_json(chart)


def number_line(points: Sequence[Point]) -> dict[str, list[float | None]]:
    """A curve as the script reads it."""
    return {"steps": [_round(step) for step, _ in points], "values": [_round(value) for _, value in points]}


def number_band(name: str, curves: Sequence[Sequence[Point]]) -> dict[str, Any] | None:
    """The span of several curves as the script reads it; None of fewer than two."""
    if len(curves) < 2:
        return None
    steps, low, mean, high = zip(*span_curves(curves))
    numbers = {key: [_round(value) for value in values] for key, values in (("low", low), ("mean", mean))}
    return {"name": name, "steps": list(steps), "high": [_round(value) for value in high], **numbers}


def embed_json(data: dict[str, Any]) -> Markup:
    """Write data as JSON that may stand in a page: nothing in it ends the element or begins another one."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") if value != int(value) or abs(value) > 1e15 else int(value)
