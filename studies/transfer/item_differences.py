"""Measures each method's distance from the reference item by item, whether it is significant, which
tasks are at chance, and what difference of accuracy could be seen.

Source: ours; see `plumbline.stats.item_noise` and `plumbline.stats.significance`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import NO_FLOOR, REFERENCE, Cell, number_cell
from plumbline.specs.study_config import Study
from plumbline.stats.distributions import t_isf
from plumbline.stats.item_noise import (
    MOST_SEEDS,
    MeanDifference,
    compare_with_chance,
    item_distance,
    item_verdicts,
    mean_by_item,
    seeds_that_decide,
)
from plumbline.stats.pooling import combine_estimates
from plumbline.stats.significance import significance

from .base_scale_method_rows import BaseScaleMethodRows
from .headline_runs import BASE, headline_runs

#: Why there is no standard error of items: too few of them, or (in a table of whatever is there) runs of other ones.
TOO_FEW, OTHER_ITEMS = "too few items", "other items"

#: Why nothing is pooled: no other method has seeds.
ONE_REFERENCE = "one reference"

#: The level after correction, and the column of the baseline's seeds that would reach it.
LEVEL, SEEDS_NEEDED = 0.05, "baseline_seeds_to_decide"

#: Why nothing is tested although there is one: all items of a task differ by the same.
NO_SPREAD = "no spread"


def answers(frames: RunFrames, keys: Iterable[object]) -> list[pd.Series]:
    """What each item gave, on (task, item), of those runs that have scores."""
    return [scores for key in keys if len(scores := frames.examples(str(key)))]


def item_cells(
    frames: RunFrames, study: Study, reference: str, behind: Sequence[pd.Series], rows: BaseScaleMethodRows
) -> dict[str, dict[str, Cell]]:
    """Method -> cells of what the items say, alone and with the seeds, and of whether it is significant.

    Args:
        behind: the reference's `answers`.

    Raises:
        PlumblineError: runs that did not answer the same items, in a table that was not asked to take what is there.
    """
    distances, reasons = _distances(frames, study, reference, behind)
    pooled = combine_estimates(*rows.spreads) if len(rows.spreads) > 1 else None
    verdicts = item_verdicts(distances, rows.floor, m=study.m, pooled=pooled)
    cells = {}
    for method, row in rows.cells.items():
        runs = row["z"].runs
        if method not in distances:
            word = REFERENCE if method == reference else reasons.get(method) or row["climb_avg"].word or MISSING
            cells[method] = {name: number_cell(None, word, runs) for name in (*verdicts.columns, SEEDS_NEEDED)} | {
                name: Cell(word, runs) for name in ("significance", "significance_pooled")
            }
            continue
        verdict = verdicts.loc[method]
        few = TOO_FEW if math.isnan(verdict["se_items"]) else NO_SPREAD
        own, over_all = (
            significance(
                distances[method].delta,
                p_items=verdict["p_items_bonferroni"],
                p_both=verdict[f"{p_both}_bonferroni"],
                p_z=rows.verdicts.loc[method, "p_bonferroni"],
            )
            for p_both in ("p_seeds_and_items", "p_pooled_seeds_and_items")
        )
        needed = seeds_that_decide(distances[method], rows.floor, LEVEL / study.m)
        cells[method] = {
            name: number_cell(float(value), few if "items" in name or few == TOO_FEW else NO_FLOOR, runs)
            for name, value in verdict.items()
        } | {
            "significance": Cell(own, runs),
            "significance_pooled": Cell(over_all if pooled else ONE_REFERENCE, runs),
            SEEDS_NEEDED: number_cell(needed, f"more than {MOST_SEEDS}", runs),
        }
        if pooled is None:
            cells[method] |= {name: number_cell(None, ONE_REFERENCE, runs) for name in verdicts if "pooled" in name}
    return cells


def _distances(
    frames: RunFrames, study: Study, reference: str, behind: Sequence[pd.Series]
) -> tuple[dict[str, MeanDifference], dict[str, str]]:
    """Distance of each method that has a value from the reference; and words for those that have none."""
    runs = frames.select(BASE, study.methods)
    distances: dict[str, MeanDifference] = {}
    reasons: dict[str, str] = {}
    for method in [method for method in study.methods if method != reference and behind]:
        for mine in answers(frames, headline_runs(runs, method, reference).index):
            try:
                distances[method] = item_distance(mine, behind)
            except PlumblineError:
                if not frames.mixed:
                    raise
                reasons[method] = OTHER_ITEMS
    return distances, reasons


def chance_words(frames: RunFrames, study: Study, behind: Sequence[pd.Series]) -> dict[str, str]:
    """Task -> whether the reference's `answers` are at, below or above guessing by two standard errors."""
    if not behind or study.suite is None or frames.mixed:
        return {}
    sources = frames.task_sources
    chance = {task.name: task.chance_of(sources.get(task.name, "")) for task in study.suite}
    return dict(compare_with_chance(mean_by_item(behind), chance))


def accuracy_resolves(rows: BaseScaleMethodRows, cells: dict[str, dict[str, Cell]], m: int) -> float:
    """The difference of averages that is told from nothing on other seeds and other items: the median over methods.

    Level `LEVEL` after Bonferroni over `m`, Student's t with the reference's seeds less one; NaN without a noise floor
    or the items' errors.
    """
    errors = [row["se_items"].value for row in cells.values()]
    known_errors = [float(error) for error in errors if error is not None]
    if not known_errors or not rows.floor.usable:
        return math.nan
    n = rows.floor.n
    critical = float(t_isf(LEVEL / m / 2, n - 1))
    return critical * math.sqrt(float(np.median(known_errors)) ** 2 + rows.floor.sigma**2 * (1 + 1 / n))
