"""Draws an experiment as SVG: the values of each arm, the gain with its interval, the path of T and its boundary.

Drawn here and by a template (`templates/picture.svg.j2`), so that it needs nothing but jinja2: 700 px wide, in the
colours of a light and a dark page, with words for who cannot see it. Names are others' words: the template escapes
them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from plumbline.core.errors import visible
from plumbline.verdict.decision.picture_axis import LEFT, RIGHT, WIDTH, Axis, labels

#: An arm's row; the path of T; what is above a panel (its heading) and below it (numbers).
ROW, PATH, ABOVE, BELOW = 38, 190, 44, 30
#: Cells of a name that fit beside the data.
NAME = 21
#: How far above and below the boundary T is drawn; beyond, its dot is at the edge, with the number.
BEYOND = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturedArm:
    """The runs of an arm: (seed, value) of those that have a value, and the outcomes of the others."""

    name: str
    values: Sequence[tuple[str, float]]
    lost: Sequence[str] = ()
    baseline: bool = False

    @property
    def runs(self) -> str:
        """How many runs there are, in words: ``2 runs, 1 diverged``."""
        outcomes = [f"{self.lost.count(one)} {one}" for one in dict.fromkeys(self.lost)]
        return ", ".join([f"{len(self.values)} run{'s' * (len(self.values) != 1)}", *outcomes])

    @property
    def mean(self) -> float | None:
        """The mean of the values; None without any."""
        return math.fsum(value / len(self.values) for _, value in self.values) if self.values else None


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
    """Everything that is drawn. Without `path` one test at a fixed number of runs decided."""

    title: str
    metric: str
    higher: bool
    arms: Sequence[PicturedArm]
    gains: Sequence[PicturedGain] = ()
    interval: str = "90 %"
    asked: float = 0.0
    path: PicturedPath | None = None

    def svg(self) -> str:
        """Draw it."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("plumbline.verdict.decision"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=lambda each: clean(each) if isinstance(each, str) and not hasattr(each, "__html__") else each,
        )
        values = self._values(top=ABOVE)
        gains = self._gains(top=values["bottom"] + BELOW + ABOVE) if self.gains else None
        path = None
        if self.path is not None and self.path.keep:
            path = _drawn_path(self.path, top=(gains or values)["bottom"] + BELOW + ABOVE)
        height = (path or gains or values)["bottom"] + BELOW
        return environment.get_template("picture.svg.j2").render(
            width=WIDTH,
            height=height,
            left=LEFT,
            right=RIGHT,
            title=self.title,
            description=self.description,
            values=values,
            gains=gains,
            path=path,
        )

    @property
    def description(self) -> str:
        """What the picture shows, in words, for who cannot see it."""
        said, label = [], labels(value for arm in self.arms for _, value in arm.values)
        for arm in self.arms:
            known = ""
            if arm.mean is not None:
                known = f" with {self.metric} {', '.join(label(value) for _, value in arm.values)}"
            said.append(f"{arm.name}: {arm.runs}{known}.")
        said += [f"{gain.name}: {_gain_in_words(gain, self.interval)}." for gain in self.gains]
        if self.path is not None:
            said += [f"{_look_in_words(runs, t, self.path)}." for runs, t in self.path.looks]
        return " ".join(said)

    def _values(self, *, top: int) -> dict[str, Any]:
        every = [value for arm in self.arms for _, value in arm.values]
        axis, label = Axis.of(every), labels(every)
        rows = []
        for number, arm in enumerate(self.arms):
            mean = arm.mean
            rows.append(
                {
                    "y": top + ROW * number + ROW // 2,
                    "kind": "baseline" if arm.baseline else "candidate",
                    "label": shortened(arm.name),
                    "below": shortened(arm.runs, NAME + 3),
                    "mean": None if mean is None else axis.x(mean),
                    "mean_says": "" if mean is None else f"mean of {arm.name}: {label(mean)}",
                    "points": [(axis.x(value), f"seed {seed}: {label(value)}") for seed, value in arm.values],
                }
            )
        bottom = top + ROW * len(self.arms)
        better = "higher is better" if self.higher else "lower is better"
        return {
            "head": f"{shortened(self.metric, 40)} of each run, and its mean; {better}",
            "top": top,
            "bottom": bottom,
            "ticks": [(axis.x(tick), axis.label(tick)) for tick in axis.ticks],
            "bank": [axis.x(arm.mean) for arm in self.arms if arm.baseline and arm.mean is not None],
            "rows": rows,
        }

    def _gains(self, *, top: int) -> dict[str, Any]:
        ends = [end for gain in self.gains for end in (gain.low, gain.middle, gain.high)]
        axis = Axis.of([0.0, self.asked, *ends])
        rows = []
        for number, gain in enumerate(self.gains):
            rows.append(
                {
                    "y": top + ROW * number + ROW // 2,
                    "label": shortened(gain.name),
                    "below": gain.note,
                    "low": axis.x(gain.low),
                    "middle": axis.x(gain.middle),
                    "high": axis.x(gain.high),
                    "ends": (math.isfinite(gain.low), math.isfinite(gain.high)),
                    "says": _gain_in_words(gain, self.interval),
                }
            )
        required = "; dashed: what is required" if self.asked else ""
        return {
            "head": f"gain in {shortened(self.metric, 24)}, {self.interval} interval, better to the right{required}",
            "top": top,
            "bottom": top + ROW * len(self.gains),
            "ticks": [(axis.x(tick), axis.label(tick)) for tick in axis.ticks],
            "zero": axis.x(0.0),
            "asked": axis.x(self.asked) if self.asked else None,
            "asked_says": f"required: more than {axis.label(self.asked)}",
            "rows": rows,
        }


def clean(text: str) -> str:
    """Write others' words in one line, visibly, and without what an XML file cannot hold."""
    return re.sub("[\ufffe\uffff]", "\ufffd", re.sub(r"\s+", " ", visible(text)))


def shortened(text: str, cells: int = NAME) -> str:
    """Cut a text that takes more cells of a line than there are, with an ellipsis."""
    text = clean(text)
    if cell_len(text) <= cells:
        return text
    while cell_len(text) > cells - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _gain_in_words(gain: PicturedGain, interval: str) -> str:
    label = labels([gain.low, gain.middle, gain.high])
    low = f"{label(gain.low)} to" if math.isfinite(gain.low) else "up to"
    return f"gain {label(gain.middle)}, {interval} interval {low} {label(gain.high)}"


def _look_in_words(runs: int, t: float, path: PicturedPath) -> str:
    def bound(sides: Sequence[float]) -> str:
        at = sides[runs - 1] if runs <= len(sides) else math.nan
        return f"{at:.3f}" if math.isfinite(at) else "none"

    return f"after {runs}: T = {t:.3f}, kept from {bound(path.keep)}, discarded below {bound(path.discard)}"


def _drawn_path(path: PicturedPath, *, top: int) -> dict[str, Any]:
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
    seen = [(x(runs), y(t), _look_in_words(runs, t, path)) for runs, t in path.looks if not math.isnan(t)]
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
        "line": "M" + "L".join(f"{at} {height}" for at, height, _ in seen) if len(seen) > 1 else "",
        "points": seen,
        "beyond": beyond,
        "looks": [(x(runs), str(runs)) for runs in range(1, most + 1) if (runs - 1) % every == 0 or runs == most],
    }
