"""Draws tries over time: the mean of each, what is kept, the best so far, and what luck alone gives the best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from plumbline.core.formats import format_count
from plumbline.report.workbench.tried_changes import TriedChange, pool_noise
from plumbline.stats.luck_band import StoppingRule, draw_bands
from plumbline.verdict.formatting import format_value
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.picture_parts import Axis, shorten

#: The picture in its own units, and where its data is.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 52, 628, 14, 254
#: A mean that is so many sigma worse than what was the baseline then is drawn at the edge.
FAR = 7.0
#: Tries for which there is room at least, and kept ones whose names stand in the picture at most.
FEWEST, NAMED = 10, 14
#: Width of a letter of a name.
LETTER = 4.2
#: Verdict -> how its mark looks; others are those that were not decided.
_MARKS = {
    Outcome.KEEP: "kept",
    Outcome.AS_GOOD: "kept",
    Outcome.DISCARD: "discarded",
    Outcome.CRASHED: "crashed",
}


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Changes beside one baseline: from the first one, or the one after a keep, up to the next keep or the last one
    before another baseline.

    Attributes:
        first, last: places among all changes, from 1.
        baseline: the mean of its runs beside the first of them; None where none has a value.
        bank: how many runs these are.
        counted: the places of those that could have been lucky: tries and screens with a mean. A claim runs again what
            is among them.
    """

    first: int
    last: int
    baseline: float | None
    bank: int
    counted: Sequence[int]


@dataclass(frozen=True)
class LuckBand:
    """Where the best mean of a stretch up to `place` would lie if nothing in it did anything, in the metric's units:
    between `near` and `far` nine times of ten, and beyond `far` once in twenty.
    """

    place: int
    near: float
    far: float


@dataclass(frozen=True)
class TriesOverTime:
    """The tries, claims and screens of one series, the newest last, with the place of each page from this one."""

    changes: Sequence[TriedChange]
    pages: Sequence[str]

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1."""
        return 1 if self.changes[0].higher else -1

    @cached_property
    def sigma(self) -> float:
        """The noise of one run, pooled over every arm of the series."""
        return pool_noise(self.changes).sigma

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The stretches, one after the other."""
        ends, last_ids = list[int](), set[str]()
        for place, each in enumerate(self.changes, start=1):
            baseline_ids = {run.run_id for run in each.baseline_runs} if each.kind == "try" else set()
            if baseline_ids and last_ids and not baseline_ids & last_ids and place - 1 not in ends:
                ends.append(place - 1)  # a baseline that was chosen, or of another machine
            last_ids = baseline_ids or last_ids
            ends += [place] if each.moves_baseline else []
        stretches = []
        for first, last in zip([1, *(place + 1 for place in ends)], [*ends, len(self.changes)]):
            if first <= last:
                part = list(enumerate(self.changes, start=1))[first - 1 : last]
                stretches.append(
                    Stretch(
                        first=first,
                        last=last,
                        baseline=part[0][1].baseline_value,
                        bank=sum(run.has_value for run in part[0][1].baseline_runs),
                        counted=[place for place, each in part if each.value is not None and each.kind != "claim"],
                    )
                )
        return stretches

    @cached_property
    def bands(self) -> list[list[LuckBand]]:
        """The band of each stretch; none where its baseline or the noise is not known."""
        bands = []
        for stretch in self.stretches:
            if (center := stretch.baseline) is not None and (unit := self.sign * self.sigma):
                rules = [self._rule(self.changes[place - 1]) for place in stretch.counted]
                ends = ([center + unit * end for end in pair] for pair in draw_bands(rules, stretch.bank))
                bands.append([LuckBand(place, *pair) for place, pair in zip(stretch.counted, ends)])
        return [band for band in bands if band]

    def _rule(self, change: TriedChange) -> StoppingRule:
        if not change.keep:
            return StoppingRule.of_runs(change.counted_runs)
        return StoppingRule(change.keep, change.discard, change.fresh_runs, change.asked / self.sigma)

    @cached_property
    def beyond(self) -> list[TriedChange]:
        """The changes whose mean is better than luck alone makes the best one up to it."""
        return [
            self.changes[each.place - 1]
            for band in self.bands
            for each in band
            if (value := self.changes[each.place - 1].value) is not None and self.sign * value > self.sign * each.far
        ]

    @cached_property
    def levels(self) -> list[float | None]:
        """What is kept after each change: the baseline of what comes then, and after the last keep its own mean."""
        levels = [stretch.baseline for stretch in self.stretches for _ in range(stretch.first, stretch.last + 1)]
        for stretch, following in zip(self.stretches, [*self.stretches[1:], None]):
            if self.changes[stretch.last - 1].moves_baseline:
                levels[stretch.last - 1] = following.baseline if following else self.changes[-1].value
        return levels

    def describe(self) -> str:
        """State what the picture shows."""
        counts = Counter(each.word for each in self.changes if each.kind != "claim")
        verdict_counts = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        sentences = [f"{format_count(counts.total(), 'try', 'tries')}: {verdict_counts}."]
        start, end = self.stretches[0].baseline, self.levels[-1]
        if start is not None and end is not None and end != start:
            start_text, end_text = (format_value(value, self.sigma) for value in (start, end))
            sentences.append(f"What is kept went from {start_text} to {end_text} in {self.changes[0].metric}.")
        if self.bands:
            keep_counts = Counter(each.word for each in self.beyond if each.verdict.is_kept)
            of_these = ", ".join(f"{count} {word}" for word, count in keep_counts.items()) or "none kept"
            sentences.append(
                "Grey is what luck alone gives: between two keeps, the best of so many means of changes that do "
                "nothing, run by the same rule, lies beyond it in one case of twenty. "
                f"Beyond it {'lies' if len(self.beyond) == 1 else 'lie'} {len(self.beyond) or 'none'} of "
                f"{format_count(sum(map(len, self.bands)), 'mean')}; of these {of_these}."
            )
        return " ".join(sentences)

    def lay_out(self) -> dict[str, Any]:
        """What the template draws."""
        axis, last = self._choose_axis(), max(len(self.changes), FEWEST)

        def x(place: float) -> float:
            return round(LEFT + (place - 0.5) / last * (RIGHT - LEFT), 1)

        def y(value: float) -> float:
            return round(BOTTOM - axis.share(value) * (BOTTOM - TOP), 1)

        has_values = any(value is not None for value in (*self.levels, *(each.value for each in self.changes)))
        marks, names, end = [], 0, len(self.changes) + 0.5
        for place, (change, page) in enumerate(zip(self.changes, self.pages), start=1):
            marks.append(self._mark(change, page, x(place), axis, y))
            names += marks[-1]["kind"] == "kept"
        stride = max(1, round(last / 8 / 5) * 5 if last > 20 else math.ceil(last / 8))
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": RIGHT,
            "bottom": BOTTOM,
            "description": self.describe(),
            "y_label": f"{self.changes[0].metric}, mean of a try's runs ({'higher' if self.sign > 0 else 'lower'} is "
            "better)",
            "x_label": "tries, in their order",
            "ticks": [(y(tick), axis.label(tick)) for tick in axis.ticks if has_values and TOP <= y(tick) <= BOTTOM],
            "places": [(x(each), each) for each in range(1, len(self.changes) + 1) if each == 1 or each % stride == 0],
            "band": "".join(_draw_band(band, x, y) for band in self.bands),
            "kept": _draw_steps(
                [(x(at), y(level)) for at, level in enumerate(self.levels, 1) if level is not None], x(end)
            ),
            "best": _draw_steps([(x(at), y(best)) for at, best in self._running_best()], x(end)),
            "marks": marks,
            "named": 0 < names <= NAMED,
        }

    def _running_best(self) -> list[tuple[int, float]]:
        """The best mean so far after each that has one, whether or not it was kept."""
        best, points = -math.inf, []
        for place, each in enumerate(self.changes, start=1):
            if each.value is not None and each.kind != "claim":
                best = max(best, self.sign * each.value)
                points.append((place, self.sign * best))
        return points

    def _choose_axis(self) -> Axis:
        """An axis of what is near to the baseline of its time, or better."""
        near = [
            each.value
            for each, level in zip(self.changes, self.levels)
            if each.value is not None
            and (level is None or not self.sigma or self.sign * (level - each.value) <= FAR * self.sigma)
        ]
        return Axis.of(
            [*near, *(each for each in self.levels if each is not None)]
            + [end for band in self.bands for each in band for end in (each.near, each.far)]
        )

    def _mark(
        self, change: TriedChange, page: str, x: float, axis: Axis, y: Callable[[float], float]
    ) -> dict[str, Any]:
        value, kind = change.value, _MARKS.get(change.verdict, "open")
        inside = value is not None and axis.low <= value <= axis.high
        height = y(value) if value is not None else (BOTTOM if self.sign > 0 else TOP)
        mean = "no value" if value is None else f"mean of {change.counted_runs}: {format_value(value, self.sigma)}"
        gain = "" if change.gain is None else f", gain {format_value(change.gain, self.sigma)}"
        # Before a keep nothing was as good: there its name covers no mark.
        name = shorten(change.title, 22)
        has_room = x - 7 - LETTER * len(name) > LEFT
        return {
            "x": x,
            "y": height,
            "kind": "claim" if change.kind == "claim" else kind,
            "shape": "square" if change.kind == "screen" else "cross" if value is None else "dot",
            "beyond": value is not None and not inside,
            "href": page,
            "says": f"{change.title}: {change.word}; {mean}{gain}",
            "name": name,
            "name_x": round(x - 7, 1) if has_room else LEFT + 2,
            "name_y": round(height + (-7 if self.sign > 0 else 12), 1),
            "anchor": "end" if has_room else "start",
        }


def _draw_band(band: Sequence[LuckBand], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """A stair for each end, from half a place before the first to half a place after the last: what crashed or is a
    claim adds nothing to luck, and the stair stays over it.
    """
    starts = [each.place - 0.5 for each in band]
    ends = [(x(left), x(right), each) for left, right, each in zip(starts, [*starts[1:], band[-1].place + 0.5], band)]
    upper = [f"{at} {y(each.near)}" for left, right, each in ends for at in (left, right)]
    lower = [f"{at} {y(each.far)}" for left, right, each in reversed(ends) for at in (right, left)]
    return "M" + "L".join([*upper, *lower]) + "Z"


def _draw_steps(points: Sequence[tuple[float, float]], end: float) -> str:
    """A line that stays until the next point, and at last until `end`."""
    path = ""
    for x, y in points:
        path += f"H{x}V{y}" if path else f"M{x} {y}"
    return path + (f"H{end}" if path else "")
