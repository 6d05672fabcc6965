"""Reads the curves that a trainer of anybody's printed: values with a name, at the step that stands in their line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

from plumbline.core.errors import visible
from plumbline.core.escape_sequences import LINE_END, decode
from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.first_values import NAMED_VALUE

#: Bytes of a log that are read, points of a curve that are shown, points that make a curve, and curves of a run.
BYTES, POINTS, FEWEST, MOST = 2**23, 60, 3, 4
#: Steps and values beyond these are no training's, and a picture has no room for them.
LAST_STEP, LARGEST = 1e15, 1e300
#: Where in training a line is; a step counts before an epoch.
_STEPS = tuple(
    re.compile(rf"(?<![A-Za-z])(?:{pattern})[\"'\]]?\s*[:=#|\[(]?\s*([0-9][0-9,_]*(?:\.[0-9]+)?)", re.IGNORECASE)
    for pattern in (r"(?:global[ _])?steps?|iter(?:ation)?s?|iter_num|updates?|batch(?:es)?|s", r"epochs?|ep")
)

Point = tuple[float, float]


def read_curves(log: Path, called: str = "") -> dict[str, list[Point]]:
    """Read each named value of a log over its steps, the metric `called` first, then what is held out.

    A line without a step belongs to the last one that had one; where none has, values are counted. A name that is
    printed fewer than `FEWEST` times is no curve. Nothing where there is no log.
    """
    points: dict[str, dict[float, float]] = {}
    last_step: float | None = None
    for line in _read_lines(log):
        step = _find_step(line)
        last_step = step if step is not None else last_step
        for label, text in NAMED_VALUE.findall(line):
            value = metric.number(text)
            if value is not None and abs(value) < LARGEST:
                own_points = points.setdefault(_normalize(label), {})
                own_points[len(own_points) + 1.0 if last_step is None else last_step] = value
    curves = {name: sorted(own_points.items()) for name, own_points in points.items() if len(own_points) >= FEWEST}
    order = sorted(curves, key=lambda name: (name != _normalize(called), not name.startswith(("val", "test", "eval"))))
    return {name: average_points(curves[name]) for name in order[:MOST]}


def average_points(points: Sequence[Point], most: int = POINTS) -> list[Point]:
    """Bring a curve to at most `most` points: the mean of each of equal stretches, at its last step."""
    stride = math.ceil(len(points) / most)
    parts = [points[first : first + stride] for first in range(0, len(points), stride or 1)]
    return [(part[-1][0], fmean(value for _, value in part)) for part in parts]


def span_curves(curves: Iterable[Sequence[Point]]) -> list[tuple[float, float, float, float]]:
    """The lowest, the mean and the highest value at each step that all curves of the most frequent length have."""
    nonempty = [list(curve) for curve in curves if curve]
    if not nonempty:
        return []
    grids = [tuple(step for step, _ in curve) for curve in nonempty]
    grid = max(grids, key=grids.count)
    aligned_curves = [curve for curve, own_grid in zip(nonempty, grids) if own_grid == grid]
    columns = [[curve[place][1] for curve in aligned_curves] for place in range(len(grid))]
    return [(step, min(column), fmean(column), max(column)) for step, column in zip(grid, columns)]


def _read_lines(log: Path) -> Iterator[str]:
    if not log.is_file():  # a named pipe would wait for ever
        return
    with open(log, "rb") as file:
        content = file.read(BYTES)
    for line in LINE_END.split(content):
        if line:
            yield decode(line[: metric.LONGEST])


def _find_step(line: str) -> float | None:
    for pattern in _STEPS:
        if match := pattern.search(line):
            step = float(match[1].replace(",", "").replace("_", ""))
            return step if step < LAST_STEP else None
    return None


def _normalize(label: str) -> str:
    return visible(re.sub(r"[ ./-]+", "_", label.strip().lower()))
