"""Makes each method's row at the base scale: its value, its distance from the reference in the spread of seeds, its
runs.

Source: transfer study, sections 3.3 and 4.1. Tables 2 and 7 show of it what they print.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import pandas as pd

from plumbline.core.run_files import COMPLETED
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import (
    NO_FLOOR,
    REFERENCE,
    Cell,
    context_cells,
    missing_word,
    number_cell,
    summarize_outcomes,
)
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import NoiseFloor, compute_verdicts, noise_floor
from plumbline.stats.pooling import SigmaEstimate, pool_spreads
from plumbline.stats.sample_spread import sample_deviation

from .headline_runs import BASE, base_values, best_first, headline_runs

#: Numbers of `plumbline.stats.noise_floor.compute_verdicts` by what a row without them says, and by their runs.
DISTANCES = {"climb_avg_delta": "delta", "z": "z", "t_run_vs_seeds": "t_run_vs_seeds"}
TESTS = ("p", "p_bonferroni", "p_run_vs_seeds", "p_run_vs_seeds_bonferroni")
STEPPED = ("p_holm", "p_bh", "p_run_vs_seeds_holm", "p_run_vs_seeds_bh")


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseScaleMethodRows:
    """Method -> cells, best CLIMB-avg first, those without a value last; the floor and the reference's runs behind it;
    and the numbers of `plumbline.stats.noise_floor.compute_verdicts`.

    `spreads`: sigma of the reference, then of the study's other seeded methods (`noise_floor.others`) that have one;
    empty if the reference has none.
    """

    cells: dict[str, dict[str, Cell]]
    floor: NoiseFloor
    spreads: tuple[SigmaEstimate, ...]
    floor_runs: pd.DataFrame
    verdicts: pd.DataFrame


def base_scale_method_rows(frames: RunFrames, study: Study, reference: str) -> BaseScaleMethodRows:
    """The rows of all methods of the study."""
    runs = frames.select(BASE, study.methods)
    floor_runs = headline_runs(runs, reference, reference)
    floor = noise_floor(floor_runs["average"]) if len(floor_runs) else noise_floor([math.nan])
    values = base_values(frames, study, reference)
    with warnings.catch_warnings():
        # A missing floor is a word in every cell that needs it.
        warnings.filterwarnings("ignore", message="no noise floor")
        table = compute_verdicts(values, floor, m=study.m, baseline=reference)
    cells = {}
    for method in best_first(values):
        mine, behind = runs[runs["method"] == method], headline_runs(runs, method, reference)
        own = tuple(behind.index)
        word = missing_word(behind["outcome"])
        compared = tuple(dict.fromkeys((*own, *floor_runs.index)))
        no_z = word if math.isnan(values[method]) else NO_FLOOR
        no_p = REFERENCE if method == reference else no_z
        verdict = table.loc[method].astype(float)
        cells[method] = (
            {
                "method": Cell(method),
                "label": Cell(study.label(method)),
                "climb_avg": number_cell(float(values[method]), word, own),
                "validation_loss": number_cell(float(behind["validation_loss"].mean()), word, own),
                "outcome": Cell(summarize_outcomes(mine["outcome"]), tuple(mine.index)),
                "n_seeds": Cell(int((mine["outcome"] == COMPLETED).sum()), tuple(mine.index)),
                "runs_averaged": Cell(_value_of(behind)),
                "climb_avg_all_seeds": number_cell(float(mine["average"].mean()), word, mine.index),
                "climb_avg_sd_all_seeds": number_cell(
                    sample_deviation(mine["average"].dropna()),
                    missing_word(mine["outcome"]) if len(mine) > 1 else "one seed",
                    mine.index,
                ),
                "run_ids": Cell(" ".join(mine["run_id"]), tuple(mine.index)),
                "category": Cell(study.methods[method].get("category", "none")),
            }
            | {name: number_cell(verdict[of], no_z, compared) for name, of in DISTANCES.items()}
            | {name: number_cell(verdict[name], no_p, compared) for name in TESTS}
            | {name: number_cell(verdict[name], no_p, runs.index) for name in STEPPED}
            | context_cells(study, BASE, frames)
        )
    seeded = [reference, *(study.noise_floor or {}).get("others", ())]
    own, *others = (_spread(runs[runs["method"] == method]) for method in seeded)
    spreads = (own, *(estimate for estimate in others if estimate.df)) if own.df else ()
    return BaseScaleMethodRows(cells=cells, floor=floor, spreads=spreads, floor_runs=floor_runs, verdicts=table)


def _spread(runs: pd.DataFrame) -> SigmaEstimate:
    """A method's sigma over its seeds; no degrees of freedom where fewer than two have a value."""
    values = runs["average"].dropna()
    return pool_spreads([values.tolist()]) if len(values) > 1 else SigmaEstimate(0.0, 0)


def _value_of(behind: pd.DataFrame) -> str:
    there = behind[behind["average"].notna()]
    seeds = ", ".join(str(seed) for seed in there["seed"])
    if there.empty:
        return "no run"
    return f"mean of seeds {seeds}" if len(behind) > 1 else f"seed {seeds}"
