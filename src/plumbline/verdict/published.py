"""What somebody prints of the methods of a file of one's own, beside what was reproduced: a CSV of theirs."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from plumbline.cli import PlumblineError, nearest
from plumbline.specs.mine import Mine
from plumbline.verdict.measures import MEASURES
from plumbline.verdict.seen import Seen

COLUMNS = ("method", "metric", "scale", "value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Printed:
    """A printed number, as text, and the mean over the seeds of the runs here; NaN where there are none."""

    method: str
    metric: str
    scale: str
    published: str
    reproduced: float
    seeds: int


def beside(mine: Mine, seen: Seen) -> list[Printed]:
    """The rows of the file, in its order; none where no file was given.

    Raises:
        PlumblineError: there is no such file, or a row names something that these runs do not have.
    """
    if not mine.asked["published"]:
        return []
    path = Path(mine.asked["published"])
    if not path.is_file():
        raise PlumblineError(f"{mine.path}: published: there is no file {path}")
    with path.open(encoding="utf-8", newline="") as lines:
        read = csv.DictReader(lines)
        if missing := [name for name in COLUMNS if name not in (read.fieldnames or ())]:
            raise PlumblineError(f"{path}: the column {missing[0]!r} is missing (columns: {', '.join(COLUMNS)})")
        rows = list(read)
    scales = [mine.scale, *([mine.larger] if mine.larger else [])]
    found = []
    for number, row in enumerate(rows, start=2):
        for key, known in (("method", mine.compared), ("metric", list(MEASURES)), ("scale", scales)):
            if row[key] not in known:
                raise PlumblineError(
                    f"{path}, line {number}: {key}: {row[key]!r} is not here{nearest(str(row[key]), known)} "
                    f"(there are {known})"
                )
        values = seen.values(MEASURES[row["metric"]], row["scale"], row["method"])
        mean = sum(values.values()) / len(values) if values else math.nan
        found.append(
            Printed(
                method=row["method"],
                metric=row["metric"],
                scale=row["scale"],
                published=row["value"],
                reproduced=mean,
                seeds=len(values),
            )
        )
    return found
