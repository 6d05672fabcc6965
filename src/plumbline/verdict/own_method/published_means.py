"""Sets the numbers that somebody prints of the methods of a user's own file (a CSV) next to the reproduced ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.specs.compared_metrics import METRICS

if TYPE_CHECKING:
    from plumbline.specs.own_methods_file import OwnMethodsFile
    from plumbline.verdict.own_method.finished_run_reader import FinishedRunReader


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedMean:
    """A number that somebody prints of a method, as text, and the mean over the seeds of the runs here.

    The mean is NaN without runs.
    """

    method: str
    metric: str
    scale: str
    published: str
    reproduced: float
    seeds: int


def beside(mine: OwnMethodsFile, seen: FinishedRunReader) -> list[PublishedMean]:
    """Read the printed numbers of a user's own file, each with the mean that was reproduced.

    Raises:
        PlumblineError: as `OwnMethodsFile.printed`.
    """
    found = []
    for row in mine.printed():
        values = seen.values(METRICS[row["metric"]], row["scale"], row["method"])
        mean = sum(values.values()) / len(values) if values else math.nan
        found.append(
            PublishedMean(
                method=row["method"],
                metric=row["metric"],
                scale=row["scale"],
                published=row["value"],
                reproduced=mean,
                seeds=len(values),
            )
        )
    return found
