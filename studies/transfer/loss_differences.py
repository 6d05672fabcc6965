"""Says which methods are told apart by validation loss, in which direction, and how many seeds the others would need.

Source: ours; the paper judges by CLIMB-avg alone (section 3.3). At a small size the tasks are near chance, while
validation loss, an average over every held-out token, has a spread over seeds small enough to tell methods apart.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import number_column, text_column
from plumbline.results.tables.table import NO_FLOOR, REFERENCE, Cell, Column, number_cell
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import NoiseFloor, compute_verdicts, noise_floor
from plumbline.stats.power import seeds_needed

from .base_scale_method_rows import BaseScaleMethodRows
from .headline_runs import BASE, headline_runs

#: The level after correction, and the share of repeats in which so many seeds would see the difference.
LEVEL, POWER = 0.05, 0.8

#: The words of a method: its loss is lower or higher than the reference's, or not told from it.
LOWER, HIGHER, NOT_RESOLVED, RESOLVED = "lower", "higher", "not resolved", "resolved"

#: More seeds than this are counted as a group, not one by one.
MANY_SEEDS = 50

#: The column of differences.
DELTA = "validation_loss_minus_baseline"

#: Groups of methods by the seeds that they would need, each up to a number.
GROUPS = (3, 6, 12, MANY_SEEDS)


def loss_columns(*, lead: bool) -> list[Column]:
    """The columns of validation loss; `lead`: they are shown in a terminal too, before those of accuracy."""
    return [
        text_column("loss_resolved", "by val. loss", narrow=lead),
        number_column(DELTA, "Δ val. loss", "+.4f", narrow=lead),
        number_column("t_validation_loss", "t, val. loss", "+.2f", readable=False),
        number_column("p_validation_loss", "p, val. loss", PROBABILITY, readable=False),
        number_column("p_validation_loss_bonferroni", "p, val. loss, Bonferroni", PROBABILITY),
        number_column("seeds_to_resolve_loss", "seeds needed", "d", narrow=lead),
    ]


def loss_floor(frames: RunFrames, study: Study, reference: str) -> NoiseFloor:
    """Mean and spread of the reference's validation loss over its seeds."""
    runs = frames.select(BASE, study.methods)
    values = headline_runs(runs, reference, reference)["validation_loss"]
    return noise_floor(values if len(values) else [math.nan])


def loss_cells(
    frames: RunFrames, study: Study, reference: str, rows: BaseScaleMethodRows
) -> dict[str, dict[str, Cell]]:
    """Method -> cells of `loss_columns`: the prediction t of each method's first seed from the reference's seeds."""
    values = pd.Series({method: row["validation_loss"].value for method, row in rows.cells.items()}, dtype=float)
    floor = loss_floor(frames, study, reference)
    with warnings.catch_warnings():
        # A missing floor is a word in every cell that needs it.
        warnings.filterwarnings("ignore", message="no noise floor")
        table = compute_verdicts(values, floor, m=study.m, baseline=reference)
    return {
        method: _cells(table.loc[method].astype(float), row, floor, study.m, is_reference=method == reference)
        for method, row in rows.cells.items()
    }


def _cells(
    verdict: pd.Series, row: dict[str, Cell], floor: NoiseFloor, m: int, *, is_reference: bool
) -> dict[str, Cell]:
    runs, loss = row["z"].runs, row["validation_loss"]
    word = loss.word if loss.value is None else NO_FLOOR
    delta, p = float(verdict["delta"]), float(verdict["p_run_vs_seeds_bonferroni"])
    untested = REFERENCE if is_reference else word
    seeds, no_seeds = None, untested
    if is_reference or math.isnan(p):
        resolved = untested
    elif p <= LEVEL:
        resolved, no_seeds = LOWER if delta < 0 else HIGHER, RESOLVED
    else:
        resolved, seeds, no_seeds = NOT_RESOLVED, _seeds(delta, floor, m), f"more than {MANY_SEEDS}"
    return {
        "loss_resolved": Cell(resolved, runs),
        DELTA: number_cell(delta, word, runs),
        "t_validation_loss": number_cell(float(verdict["t_run_vs_seeds"]), word, runs),
        "p_validation_loss": number_cell(float(verdict["p_run_vs_seeds"]), untested, runs),
        "p_validation_loss_bonferroni": number_cell(p, untested, runs),
        "seeds_to_resolve_loss": number_cell(seeds, no_seeds, runs),
    }


def _seeds(delta: float, floor: NoiseFloor, m: int) -> int | None:
    """Seeds that would resolve this difference, were it and the floor's sigma true; None if they are too many.

    Against as many of the reference, or those that it has, where these are more.
    """
    try:
        needed = seeds_needed(delta, floor.sigma, alpha=LEVEL, power=POWER, m=m, reference=floor.n)
    except PlumblineError:  # a difference of nothing, or one that no number of seeds reaches
        return None
    return needed if needed <= MANY_SEEDS else None


def loss_lead(study: Study, rows: Sequence[dict[str, Cell]], floor: NoiseFloor) -> list[str]:
    """What validation loss tells apart, as sentences for the first lines of a table; none without a noise floor.

    Args:
        rows: cells of `loss_columns` and of label.
        floor: the reference's `loss_floor`.
    """
    if not floor.usable:
        return []
    listed = sorted((row for row in rows if row[DELTA].value is not None), key=lambda row: float(row[DELTA].value or 0))
    by_direction = {word: [row for row in listed if row["loss_resolved"].value == word] for word in (LOWER, HIGHER)}
    count = sum(map(len, by_direction.values()))
    text = "; ".join(f"{word}: {', '.join(map(_with_delta, group))}" for word, group in by_direction.items() if group)
    text = f". {text[0].upper()}{text[1:]}" if text else ""
    reference, steps = study.label(str(study.reference)), _budget(study)
    sentences = [
        f"Resolved by validation loss at {study.scale_label(BASE)}{steps}: {count or 'none'} of {study.m} methods, one "
        f"run each against {floor.n} seeds of {reference} (prediction t, Bonferroni){text}."
    ]
    if others := [row for row in listed if row["loss_resolved"].value == NOT_RESOLVED]:
        sentences.append(
            f"Not resolved: {len(others)}. Seeds that would resolve them in {POWER:.0%} of repeats, beside as many of "
            f"{reference} or its {floor.n}, were their differences and the spread of seeds ({floor.sigma:.4f}) the "
            f"true ones: {_by_seeds(others)}."
        )
    if without := [row for row in rows if row[DELTA].value is None]:
        names = [f"{row['label'].value} ({row[DELTA].word})" for row in without]
        sentences.append(f"Without a loss to judge: {', '.join(names)}.")
    return sentences


def _with_delta(row: dict[str, Cell]) -> str:
    return f"{row['label'].value} {row['validation_loss_minus_baseline'].value:+.2f}"


def _budget(study: Study) -> str:
    steps = {run.spec.train.steps for run in study.runs.values() if run.spec.scale == BASE}
    return f" and {steps.pop()} steps" if len(steps) == 1 else ""


def _by_seeds(rows: list[dict[str, Cell]]) -> str:
    """Methods in groups by the seeds that each would need."""
    parts, low = [], 2
    for high in GROUPS:
        names = [
            str(row["label"].value) for row in rows if low <= (row["seeds_to_resolve_loss"].value or math.inf) <= high
        ]
        parts += [f"{low} to {high}: {', '.join(names)}"] if names else []
        low = high + 1
    names = [str(row["label"].value) for row in rows if row["seeds_to_resolve_loss"].value is None]
    return "; ".join([*parts, *([f"more than {MANY_SEEDS}: {', '.join(names)}"] if names else [])])
