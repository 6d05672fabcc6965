"""Makes the table of lower learning rates for the methods that diverge at the large scale, made on request.

Source: transfer study, Limitations: "A method we report as diverging at 3B may become stable under a retuned recipe".
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers, read_printed
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import OUTCOME, RUN_IDS, label_columns, make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    make_printed_cell,
    make_published_column,
    missing_word,
    number_cell,
    require_reference,
)
from plumbline.specs.study_config import Run, Study

from ..headline_runs import LARGE

#: The group of runs at lower rates.
GROUP = "retuned_rates"

COLUMNS = [
    *label_columns("method", "Method"),
    number_column("peak_lr", "peak learning rate", ".3g", narrow=True),
    number_column("rate_over_shared", "over the shared one", ".3g"),
    OUTCOME,
    number_column("first_nan_step", "NaN at step", "d", narrow=True),
    make_published_column("first_nan_step", "NaN at step"),
    number_column("first_nan_training_fraction", "share of training", ".3f"),
    number_column("validation_loss", "val. loss", ".4f", narrow=True),
    number_column("loss_minus_baseline_same_rate", "loss − baseline's at that rate", "+.4f", narrow=True),
    number_column("loss_minus_baseline_shared_rate", "loss − baseline's at the shared rate", "+.4f"),
    number_column("climb_avg", "CLIMB-avg", ".4f"),
    number_column("climb_avg_minus_baseline_same_rate", "Δ CLIMB-avg at that rate", "+.4f"),
    Column(name="seed", header="seed", kind="fact", format="d"),
    RUN_IDS,
    *CONTEXT,
]


def retuned_rates(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """The reference and each method that diverges in print, at the shared rate and then at each lower one."""
    reference, printed = require_reference(study, GROUP), published.table("table6", key=["method_id", "seed"])
    lower: dict[str, list[Run]] = {}
    for run in study.group(GROUP):
        lower.setdefault(study.definition["arms"][run.spec.method]["variant_of"], []).append(run)
    names = [name for method, runs in lower.items() for name in (method, *(run.spec.method for run in runs))]
    rows = [_make_row(frames, study, reference, printed, name) for name in names]
    return make_table(
        "retuned_rates",
        f"Lower learning rates for what diverges at {study.scale_label(LARGE)}, and for {study.label(reference)}.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "One seed a row. The reference is trained at each rate as well: a method with a rate of its own against a "
            "baseline at the shared one would be the tuning of one side that the paper rules out (section 6).",
            "Rates are those of interpretation retuned_rates; the schedule's shape and everything else are shared.",
        ],
        published=published.format_path("table6"),
        scores=frames,
    )


def _make_row(frames: RunFrames, study: Study, reference: str, printed: pd.DataFrame, method: str) -> dict[str, Cell]:
    """Make the row of a method or an arm: of its run with the seed that the arms have."""
    arm = study.definition["arms"].get(method, {})
    shared_method, seed = arm.get("variant_of", method), study.group(GROUP)[0].spec.init_seed
    key, shared = frames.key(LARGE, method, seed), frames.key(LARGE, reference, seed)
    own = () if key is None else (key,)
    run = None if key is None else frames.runs.loc[key]
    outcome = MISSING if run is None else str(run["outcome"])
    rate, shared_rate = _find_rate(study, method, seed), _find_rate(study, shared_method, seed)
    same = next(
        (
            frames.key(LARGE, name, seed)
            for name in _list_runs_of(study, reference)
            if _find_rate(study, name, seed) == rate
        ),
        None,
    )
    row = {
        "method": Cell(method),
        "label": Cell(study.label(method)),
        "peak_lr": number_cell(rate, MISSING, own),
        "rate_over_shared": number_cell(rate / shared_rate, MISSING, own),
        "outcome": Cell(outcome, own),
        "seed": Cell(seed),
        "run_ids": Cell("none" if run is None else str(run["run_id"]), own),
    }
    word = "no divergence" if outcome == COMPLETED else MISSING
    step = float(run["step"]) if run is not None and outcome == DIVERGED else math.nan
    row |= {
        "first_nan_step": Cell(None, own, word=word) if math.isnan(step) else Cell(int(step), own),
        "first_nan_training_fraction": number_cell(step / run["steps"] if run is not None else step, word, own),
        "first_nan_step_published": make_printed_cell(read_printed(printed, (method, str(seed)), "nan_step")),
    }
    for column, name in (("validation_loss", "validation_loss"), ("climb_avg", "average")):
        row[column] = number_cell(_read(frames, key, name), missing_word([outcome]), own)
    for column, name, other in (
        ("loss_minus_baseline_same_rate", "validation_loss", same),
        ("loss_minus_baseline_shared_rate", "validation_loss", shared),
        ("climb_avg_minus_baseline_same_rate", "average", same),
    ):
        row[column] = _subtract(frames, key, other, name)
    return row | context_cells(study, LARGE, frames)


def _list_runs_of(study: Study, method: str) -> list[str]:
    """List a method and its arms at lower rates."""
    arms = study.definition["arms"]
    names = (run.spec.method for run in study.group(GROUP))
    return [method, *(name for name in names if arms[name]["variant_of"] == method)]


def _find_rate(study: Study, method: str, seed: int) -> float:
    """Find the peak learning rate of a method's run; NaN without one at this preset."""
    run = study.every_run.get(study.key(LARGE, method, seed))
    return math.nan if run is None else float(run.spec.optimizer.learning_rate)


def _read(frames: RunFrames, key: str | None, column: str) -> float:
    return math.nan if key is None else float(frames.runs.loc[key, column])


def _subtract(frames: RunFrames, key: str | None, other: str | None, column: str) -> Cell:
    """By how much a run's value is above that of the reference."""
    keys = tuple(each for each in (key, other) if each is not None)
    if key is not None and key == other:
        return Cell(None, keys, word=REFERENCE)
    outcomes = [str(frames.runs.loc[each, "outcome"]) for each in keys] or [MISSING]
    return number_cell(_read(frames, key, column) - _read(frames, other, column), missing_word(outcomes), keys)
