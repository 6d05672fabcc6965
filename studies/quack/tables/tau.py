"""Makes the table of tau: QuacK over the wider grid of tau at the middle base rate, and what its rates did.

Source: quack study, "Failure signatures" and "Next checks" (which proposes the wider grid). Not a table of the
summary.
"""

from __future__ import annotations

import math
from typing import Any

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, label_columns, make_table, number_column
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.specs.study_config import Study

from ..run_cells import ATTENTION_COLUMN, LARGEST_NOTE, LOSS, STABLE_NOTE, TROUBLE, largest_logit, loss, row_facts
from ..run_grid import ATTENTION, QUACK, RunGrid

COLUMNS = [
    *label_columns("setting", "Run"),
    ATTENTION_COLUMN,
    Column(name="tau", header="tau", kind="label", format="g", narrow=True),
    LOSS,
    TROUBLE,
    number_column("largest_loss_rise", "max loss rise", ".3f", narrow=True),
    number_column("largest_mean_logit_change", "max mean |Δ logit|", ".3g", narrow=True),
    number_column("largest_logit", "max logit", ".3g", narrow=True),
    number_column("lowest_norm_ratio", "lowest norm ratio", ".3g"),
    number_column("highest_norm_ratio", "highest norm ratio", ".3g"),
    number_column("norm_ratios_clamped", "norm ratios clamped", "d"),
    *FACTS,
]


def tau(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each attention and tau, rising."""
    grid = RunGrid(frames, study)
    rows = [
        _row(grid, scale, value, key)
        for scale in grid.scales
        for value, key in sorted(grid.list_runs_by_tau(scale).items())
    ]
    return make_table(
        "tau",
        f"QuacK at a base rate of {grid.middle_eta:g}, by tau.",
        study,
        key="setting",
        columns=COLUMNS,
        rows=rows,
        notes=[
            STABLE_NOTE,
            "A ratio of norms is what a rate was multiplied with beside tau, over all heads, layers and steps: at the "
            "start it is 1, and at most 10 of it is applied (`norm ratios clamped`: how many times it was more).",
            f"{LARGEST_NOTE} Max mean |Δ logit|: the largest mean over the watched head of one step's change.",
        ],
    )


def _row(grid: RunGrid, scale: str, value: float, key: str) -> dict[str, Cell]:
    report: dict[str, Any] = grid.report(key, QUACK)
    rise, outcome = grid.rise(key), grid.outcome(key)
    change = grid.curve(key, "logit_change")
    mine = (key,)

    def read(reading: float | int | None) -> Cell:
        finite = reading is not None and math.isfinite(reading)
        return number_cell(reading if finite else None, outcome if outcome == "missing" else "not read", mine)

    return {
        "setting": Cell(f"{scale}/{value:g}"),
        "label": Cell(f"{ATTENTION[scale]} {grid.study.definition['methods'][QUACK]['label']}"),
        "attention": Cell(ATTENTION[scale]),
        "tau": Cell(value),
        "validation_loss": loss(grid, key),
        "diverged_or_spiked": Cell(grid.trouble(key) or "none", mine),
        "largest_loss_rise": number_cell(
            rise if math.isfinite(rise) else None, "not read" if math.isnan(rise) else "not finite", mine
        ),
        "largest_mean_logit_change": read(change.max() if len(change) else None),
        "largest_logit": largest_logit(grid, key),
        "lowest_norm_ratio": read(report.get("ratio_lowest")),
        "highest_norm_ratio": read(report.get("ratio_highest")),
        "norm_ratios_clamped": read(report.get("ratios_clamped")),
    } | row_facts(grid, scale, mine, key)
