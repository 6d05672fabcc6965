"""Draws a decision as SVG: the values of each arm, also by time, the gain and its interval, the path of T.

Nothing but jinja2 is needed; a picture is 700 px wide, in the colours of a light and a dark page, with words for who
cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from plumbline.verdict.picture_parts import (
    ABOVE,
    BELOW,
    LEFT,
    NAME,
    RIGHT,
    WIDTH,
    Axis,
    choose_digits,
    fill_template,
    shorten,
)

#: The heights of an arm's row, of the path of T, and of the values by time.
ROW, PATH, TIME = 38, 190, 130
#: How far above and below the boundary T is drawn; beyond, its dot is at the edge, with the number.
BEYOND = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturedArm:
    """The runs of an arm: (seed, value) of those that have a value, and the outcomes of the others.

    `places`: of each value, where its run stands in the order in which runs are drawn, from 0; empty if not known.
    """

    name: str
    values: Sequence[tuple[str, float]]
    lost: Sequence[str] = ()
    baseline: bool = False
    fresh: bool = False
    places: Sequence[int] = ()

    @property
    def runs_text(self) -> str:
        """How many runs there are, as text: ``2 runs, 1 diverged``."""
        outcomes = [f"{self.lost.count(outcome)} {outcome}" for outcome in dict.fromkeys(self.lost)]
        return ", ".join([f"{len(self.values)} run{'s' * (len(self.values) != 1)}", *outcomes])

    @property
    def mean(self) -> float | None:
        """The mean of the values; None without any."""
        return math.fsum(value / len(self.values) for _, value in self.values) if self.values else None

    @property
    def kind(self) -> str:
        """Which of the two arms it is."""
        return "baseline" if self.baseline else "candidate"

    @property
    def mark(self) -> str:
        """How its runs are marked: those that were made since the candidate had looked good are hollow."""
        return f"{self.kind}{' fresh' * self.fresh}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturedGain:
    """What a candidate gains over its baseline, upwards when better: an estimate between `low` and `high`."""

    name: str
    middle: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturedPath:
    """T after each run of the candidate: `looks` are (runs, T); `keep`, `discard`: the boundary after 1, 2, ... runs.

    NaN where a look can keep, or discard, nothing.
    """

    looks: Sequence[tuple[int, float]]
    keep: Sequence[float]
    discard: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class DecisionPicture:
    """Everything that is drawn. Without `path` one test at a fixed number of runs decided.

    `listed_by`: what the places of runs are those of ("rows"), where the order in which runs were made is not known.
    """

    title: str
    metric: str
    higher: bool
    arms: Sequence[PicturedArm]
    gains: Sequence[PicturedGain] = ()
    interval: str = "90 %"
    asked: float = 0.0
    path: PicturedPath | None = None
    listed_by: str = ""

    def svg(self) -> str:
        """Draw it."""
        values = self._lay_out_values(ABOVE)
        bottom, path = values["bottom"], dict[str, Any]()
        if order := self._lay_out_order(bottom + BELOW + ABOVE):
            bottom = order["bottom"]
        if gains := self._lay_out_gains(bottom + BELOW + ABOVE) if self.gains else None:
            bottom = gains["bottom"]
        if self.path is not None and self.path.keep:
            path = _lay_out_path(self.path, bottom + BELOW + ABOVE)
            bottom = path["bottom"]
        size = {"width": WIDTH, "height": bottom + BELOW, "left": LEFT, "right": RIGHT}
        panels = {"values": values, "order": order, "gains": gains, "path": path}
        return fill_template("picture.svg.j2", title=self.title, description=self.description, **size, **panels)

    @property
    def description(self) -> str:
        """What the picture shows, as text, for who cannot see it."""
        sentences, label = [], choose_digits(value for arm in self.arms for _, value in arm.values)
        for arm in self.arms:
            values = f" with {self.metric} {', '.join(label(value) for _, value in arm.values)}" if arm.values else ""
            sentences.append(f"{arm.name}: {arm.runs_text}{values}.")
        if runs := self.runs_in_order:
            groups = groupby(runs, key=lambda run: run[1].name)
            phrases = [f"{name} {', '.join(label(arm.values[n][1]) for _, arm, n in own)}" for name, own in groups]
            order = self.order_name if self.listed_by else "in which they were made"
            sentences.append(f"In the order {order}: {'; '.join(phrases)}.")
        sentences += [f"{gain.name}: {_describe_gain(gain, self.interval)}." for gain in self.gains]
        if self.path is not None:
            sentences += [f"{_describe_look(runs, t, self.path)}." for runs, t in self.path.looks]
        return " ".join(sentences)

    @property
    def order_name(self) -> str:
        """In which order runs are drawn, as text."""
        if self.listed_by:
            return f"of the {self.listed_by}; when runs were made is not known"
        return "in which runs were made"

    @property
    def runs_in_order(self) -> list[tuple[int, PicturedArm, int]]:
        """Every run with a value in the order of their places: its place, its arm and which of the arm's values it has.

        Empty where a place is not known, or there is but one run.
        """
        if any(len(arm.places) != len(arm.values) for arm in self.arms):
            return []
        runs = [(place, arm, number) for arm in self.arms for number, place in enumerate(arm.places)]
        return sorted(runs, key=lambda run: run[0]) if len(runs) > 1 else []

    def _lay_out_order(self, top: int) -> dict[str, Any]:
        """Values from left to right by their places, each arm's mean as a line over its runs; empty without places."""
        runs, bottom = self.runs_in_order, top + TIME
        if not runs:
            return {}
        every = [arm.values[position][1] for _, arm, position in runs]
        axis, label, width = Axis.of(every), choose_digits(every), (RIGHT - LEFT) / len(runs)

        def y(value: float) -> float:
            return round(bottom - axis.share(value) * TIME, 1)

        x = {place: round(LEFT + (number + 0.5) * width, 1) for number, (place, _, _) in enumerate(runs)}
        points = []
        for place, arm, position in runs:
            seed, value = arm.values[position]
            says = f"run {place + 1}: {arm.name}, seed {seed}: {label(value)}"
            points.append({"mark": arm.mark, "x": x[place], "y": y(value), "says": says})
        means = [
            {
                "kind": arm.kind,
                "begin": round(x[min(arm.places)] - 8, 1),
                "end": round(x[max(arm.places)] + 8, 1),
                "y": y(arm.mean),
                "says": f"mean of {arm.name}: {label(arm.mean)}",
            }
            for arm in self.arms
            if arm.mean is not None
        ]
        step = max(1, len(runs) // 16)
        ends = "" if self.listed_by else ", and each mean"
        ends += "; hollow: fresh runs" if any(arm.fresh for arm in self.arms) else ""
        return {
            "head": f"{shorten(self.metric, 24)} in the order {self.order_name}{ends}",
            "top": top,
            "bottom": bottom,
            "ticks": [(y(tick), axis.label(tick)) for tick in axis.ticks],
            "points": points,
            "means": means,
            "runs": [(x[place], str(place + 1)) for place, _, _ in runs[::step]],
        }

    def _lay_out_values(self, top: int) -> dict[str, Any]:
        every = [value for arm in self.arms for _, value in arm.values]
        axis, label = Axis.of(every), choose_digits(every)
        rows = [
            {
                "kind": arm.kind,
                "mark": arm.mark,
                "label": shorten(arm.name),
                "below": shorten(arm.runs_text, NAME + 3),
                "mean": None if arm.mean is None else axis.x(arm.mean),
                "mean_says": "" if arm.mean is None else f"mean of {arm.name}: {label(arm.mean)}",
                "points": [(axis.x(value), f"seed {seed}: {label(value)}") for seed, value in arm.values],
            }
            for arm in self.arms
        ]
        better = "higher is better" if self.higher else "lower is better"
        head = f"{shorten(self.metric, 40)} of each run, and its mean; {better}"
        banks = [axis.x(arm.mean) for arm in self.arms if arm.baseline and arm.mean is not None]
        return _lay_out_panel(top, head, axis, rows) | {"bank": banks}

    def _lay_out_gains(self, top: int) -> dict[str, Any]:
        axis = Axis.of([0.0, self.asked, *(end for gain in self.gains for end in (gain.low, gain.middle, gain.high))])
        rows = [
            {
                "label": shorten(gain.name),
                "below": gain.note,
                "low": axis.x(gain.low),
                "middle": axis.x(gain.middle),
                "high": axis.x(gain.high),
                "ends": (math.isfinite(gain.low), math.isfinite(gain.high)),
                "says": _describe_gain(gain, self.interval),
            }
            for gain in self.gains
        ]
        required = "; dashed: what is required" if self.asked else ""
        head = f"gain in {shorten(self.metric, 24)}, {self.interval} interval, better to the right{required}"
        return _lay_out_panel(top, head, axis, rows) | {
            "zero": axis.x(0.0),
            "asked": axis.x(self.asked) if self.asked else None,
            "asked_says": f"required: more than {axis.label(self.asked)}",
        }


def _lay_out_panel(top: int, head: str, axis: Axis, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A row below the other, beside one axis from left to right."""
    for number, row in enumerate(rows):
        row["y"] = top + ROW * number + ROW // 2
    ticks = [(axis.x(tick), axis.label(tick)) for tick in axis.ticks]
    return {"head": head, "top": top, "bottom": top + ROW * len(rows), "ticks": ticks, "rows": rows}


def _describe_gain(gain: PicturedGain, interval: str) -> str:
    label = choose_digits([gain.low, gain.middle, gain.high])
    low = f"{label(gain.low)} to" if math.isfinite(gain.low) else "up to"
    return f"gain {label(gain.middle)}, {interval} interval {low} {label(gain.high)}"


def _describe_look(runs: int, t: float, path: PicturedPath) -> str:
    def format_bound(sides: Sequence[float]) -> str:
        threshold = sides[runs - 1] if runs <= len(sides) else math.nan
        return f"{threshold:.3f}" if math.isfinite(threshold) else "none"

    return (
        f"after {runs}: T = {t:.3f}, kept from {format_bound(path.keep)}, discarded below {format_bound(path.discard)}"
    )


def _lay_out_path(path: PicturedPath, top: int) -> dict[str, Any]:
    bottom, most = top + PATH, len(path.keep)
    bounds = [each for each in (*path.keep, *path.discard) if math.isfinite(each)] or [0.0]
    axis = Axis.of([min(0.0, *bounds) - BEYOND, min(max(bounds), 8.0) + BEYOND])

    def x(runs: int) -> float:
        return round(LEFT + (runs - 0.5) / most * (RIGHT - LEFT), 1)

    def y(t: float) -> float:
        return round(bottom - axis.share(t) * PATH, 1)

    width = round((RIGHT - LEFT) / most - 4, 1)
    bands = []
    for runs, (keep, discard) in enumerate(zip(path.keep, path.discard), start=1):
        begin = round(x(runs) - width / 2, 1)
        for kind, at, first, last, says in (
            ("keep", keep, top, y(keep), f"after {runs}: kept from {keep:.3f}"),
            ("discard", discard, y(discard), bottom, f"after {runs}: discarded below {discard:.3f}"),
        ):
            if math.isfinite(at):
                band = {"kind": kind, "x": begin, "y": first, "width": width, "height": round(last - first, 1)}
                bands.append(band | {"edge": y(at), "says": says})
    points = [(x(runs), y(t), _describe_look(runs, t, path)) for runs, t in path.looks if not math.isnan(t)]
    beyond = [
        (x(runs), top + 20 if t > axis.high else bottom - 12, f"T = {t:.1f}")
        for runs, t in path.looks
        if not axis.low <= t <= axis.high and not math.isnan(t)
    ]
    every = max(1, most // 16)
    return {
        "head": "T after each run of the candidate, and where it is kept or discarded",
        "top": top,
        "bottom": bottom,
        "ticks": [(y(tick), axis.label(tick)) for tick in axis.ticks],
        "bands": bands,
        "above": "kept" if any(map(math.isfinite, path.keep)) else "",
        "below": "discarded" if any(map(math.isfinite, path.discard)) else "",
        "line": "M" + "L".join(f"{at} {height}" for at, height, _ in points) if len(points) > 1 else "",
        "points": points,
        "beyond": beyond,
        "looks": [(x(runs), str(runs)) for runs in range(1, most + 1) if (runs - 1) % every == 0 or runs == most],
    }
