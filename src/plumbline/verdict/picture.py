"""Draws a decision as SVG: the values of each arm, also by time, the gain and its interval, the path of T.

A picture is 700 px wide, in the colours of a light and a dark page, with words for who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeVar

from plumbline.verdict.picture_parts import (
    ABOVE,
    BELOW,
    BELOW_NAME,
    LEFT,
    RIGHT,
    Axis,
    choose_digits,
    draw_below,
    draw_columns,
    draw_dot,
    draw_head,
    draw_heights,
    draw_left,
    draw_path,
    draw_picture,
    draw_text,
    shorten,
    write_text,
)

T = TypeVar("T")
#: The heights of an arm's row, of the path of T, and of the values by time.
ROW, PATH, TIME = 38, 190, 130
#: The width of a digit below an axis.
NUMBER = 7
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
        panels = [(ROW * len(self.arms), self._draw_values)]
        if self.runs_in_order:
            panels.append((TIME, self._draw_order))
        if self.gains:
            panels.append((ROW * len(self.gains), self._draw_gains))
        if self.path is not None and self.path.keep:
            panels.append((PATH, partial(_draw_path, self.path)))
        elements, top = list[str](), ABOVE
        for height, draw in panels:
            elements += ["<g>", *draw(top, top + height), "</g>"]
            top += height + BELOW + ABOVE
        return draw_picture(self.title, self.description, top - ABOVE, elements)

    @property
    def description(self) -> str:
        """What the picture shows, as text, for who cannot see it."""
        sentences, label = [], choose_digits(value for arm in self.arms for _, value in arm.values)
        for arm in self.arms:
            values = f" with {self.metric} {', '.join(label(value) for _, value in arm.values)}" if arm.values else ""
            sentences.append(f"{arm.name}: {arm.runs_text}{values}.")
        if runs := self.runs_in_order:
            groups = groupby(runs, key=lambda run: run[1].name)
            phrases = [
                f"{name} {', '.join(label(arm.values[n][1]) for _, arm, n in arm_runs)}" for name, arm_runs in groups
            ]
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

    def _draw_values(self, top: int, bottom: int) -> list[str]:
        every = [value for arm in self.arms for _, value in arm.values]
        axis, label = Axis.of(every), choose_digits(every)
        direction = "higher is better" if self.higher else "lower is better"
        elements = [
            draw_head(top, f"{shorten(self.metric, 24)} of each run, and its mean; {direction}"),
            *draw_columns(axis, top, bottom),
            "",
        ]
        for arm in self.arms:
            if arm.baseline and arm.mean is not None:
                elements.append(draw_path("bank", f"M{axis.x(arm.mean)} {top}V{bottom}"))
        for y, arm in _place_rows(top, self.arms):
            elements += _draw_row_name(y, arm.name, shorten(arm.runs_text, BELOW_NAME))
            if arm.mean is not None:
                line = f"M{axis.x(arm.mean)} {y - 11}V{y + 11}"
                elements.append(draw_path(f"mean {arm.kind}", line, f"mean of {arm.name}: {label(arm.mean)}"))
            for seed, value in arm.values:
                elements.append(draw_dot(arm.mark, axis.x(value), y, f"seed {seed}: {label(value)}"))
        return elements

    def _draw_order(self, top: int, bottom: int) -> list[str]:
        """Values from left to right by their places, each arm's mean as a line over its runs."""
        runs = self.runs_in_order
        every = [arm.values[position][1] for _, arm, position in runs]
        axis, label, width = Axis.of(every), choose_digits(every), (RIGHT - LEFT) / len(runs)
        x = {place: round(LEFT + (number + 0.5) * width, 1) for number, (place, _, _) in enumerate(runs)}
        ends = "" if self.listed_by else ", and each mean"
        ends += "; hollow: fresh runs" if any(arm.fresh for arm in self.arms) else ""
        elements = [
            draw_head(top, f"{shorten(self.metric, 14)} in the order {self.order_name}{ends}"),
            *draw_heights(axis, top, bottom),
            "",
        ]
        for arm in self.arms:
            if arm.mean is not None:
                begin, end = round(x[min(arm.places)] - 8, 1), round(x[max(arm.places)] + 8, 1)
                line = f"M{begin} {axis.y(arm.mean, top, bottom)}H{end}"
                elements.append(draw_path(f"mean {arm.kind}", line, f"mean of {arm.name}: {label(arm.mean)}"))
        for place, arm, position in runs:
            seed, value = arm.values[position]
            text = f"run {place + 1}: {arm.name}, seed {seed}: {label(value)}"
            elements.append(draw_dot(arm.mark, x[place], axis.y(value, top, bottom), text))
        longest = NUMBER * len(str(runs[-1][0] + 1)) + 2 * NUMBER  # with the room that keeps two apart
        ticks = runs[:: math.ceil(longest / width)]
        numbers = [draw_below(x[place], bottom, str(place + 1)) for place, _, _ in ticks]
        return [*elements, *numbers, "", draw_left(bottom + 15, "run")]

    def _draw_gains(self, top: int, bottom: int) -> list[str]:
        axis = Axis.of([0.0, self.asked, *(end for gain in self.gains for end in (gain.low, gain.middle, gain.high))])
        required = "; dashed: what is required" if self.asked else ""
        head = f"gain in {shorten(self.metric, 14)}, {self.interval} interval, better to the right{required}"
        rule = draw_path("rule", f"M{axis.x(0.0)} {top}V{bottom}")
        elements = [draw_head(top, head), *draw_columns(axis, top, bottom), "", rule]
        if self.asked:
            text = f"required: more than {axis.label(self.asked)}"
            elements.append(draw_path("asked", f"M{axis.x(self.asked)} {top}V{bottom}", text))
        for y, gain in _place_rows(top, self.gains):
            low, high = axis.x(gain.low), axis.x(gain.high)
            ends = [f"M{x} {y - 6}v12" for x, end in ((low, gain.low), (high, gain.high)) if math.isfinite(end)]
            line = f"M{low} {y}H{high}{''.join(ends)}"
            elements += _draw_row_name(y, gain.name, gain.note)
            elements.append(draw_path("reach", line, _describe_gain(gain, self.interval)))
            elements.append(draw_dot("candidate", axis.x(gain.middle), y))
        return elements


def _place_rows(top: int, items: Sequence[T]) -> Iterator[tuple[int, T]]:
    """The height of each row, one below the other, with its item."""
    return ((top + ROW * number + ROW // 2, item) for number, item in enumerate(items))


def _draw_row_name(y: int, name: str, note: str) -> list[str]:
    return [draw_left(y - 2, shorten(name), kind=""), draw_left(y + 12, note), ""]


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


def _draw_path(path: PicturedPath, top: int, bottom: int) -> list[str]:
    count = len(path.keep)
    bounds = [each for each in (*path.keep, *path.discard) if math.isfinite(each)] or [0.0]
    axis = Axis.of([min(0.0, *bounds) - BEYOND, min(max(bounds), 8.0) + BEYOND])

    def x(runs: int) -> float:
        return round(LEFT + (runs - 0.5) / count * (RIGHT - LEFT), 1)

    def y(t: float) -> float:
        return axis.y(t, top, bottom)

    head = draw_head(top, "T after each run of the candidate, and where it is kept or discarded")
    elements = [head, *draw_heights(axis, top, bottom), ""]
    width = round((RIGHT - LEFT) / count - 4, 1)
    for runs, (keep, discard) in enumerate(zip(path.keep, path.discard), start=1):
        begin = round(x(runs) - width / 2, 1)
        for kind, bound, first, last, text in (
            ("keep", keep, top, y(keep), f"after {runs}: kept from {keep:.3f}"),
            ("discard", discard, y(discard), bottom, f"after {runs}: discarded below {discard:.3f}"),
        ):
            if math.isfinite(bound):
                place = f'x="{begin}" y="{first}" width="{width}" height="{round(last - first, 1)}"'
                elements.append(f'<rect class="{kind}" {place}><title>{write_text(text)}</title></rect>')
                elements.append(draw_path(f"edge {kind}", f"M{begin} {y(bound)}h{width}"))
    sides = [("keep", path.keep, top + 15, "kept"), ("discard", path.discard, bottom - 6, "discarded")]
    for kind, thresholds, height, text in sides:
        label = text if any(map(math.isfinite, thresholds)) else ""
        elements.append(draw_text(RIGHT - 6, height, label, kind=kind, anchor="end"))
    looks = [(runs, t) for runs, t in path.looks if not math.isnan(t)]
    if len(looks) > 1:
        elements.append(draw_path("path", "M" + "L".join(f"{x(runs)} {y(t)}" for runs, t in looks)))
    elements += [draw_dot("candidate", x(runs), y(t), _describe_look(runs, t, path)) for runs, t in looks]
    for runs, t in looks:
        if not axis.low <= t <= axis.high:
            height = top + 20 if t > axis.high else bottom - 12
            elements.append(draw_text(x(runs), height, f"T = {t:.1f}", kind="small", anchor="middle"))
    every = max(1, count // 16)
    numbered = [runs for runs in range(1, count + 1) if (runs - 1) % every == 0 or runs == count]
    return [
        *elements,
        *(draw_below(x(runs), bottom, str(runs)) for runs in numbered),
        "",
        draw_left(bottom + 15, "runs"),
    ]
