"""Makes the table of tau: QuacK over the wider grid of tau at the middle base rate, and what its rates did.

Source: quack study, "Failure signatures" and "Next checks" (which proposes the wider grid). Not a table of the
summary.
"""

from __future__ import annotations

import math
from typing import Any

from plumbline.audit.published import Published
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.layout import FACTS, labels, make_table, ours
from plumbline.results.tables.table import Cell, Column, Table, number
from plumbline.specs.study_config import Study

from ..cells import ATTENTION_COLUMN, LARGEST_NOTE, LOSS, STABLE_NOTE, TROUBLE, largest_logit, loss, row_facts
from ..grid import ATTENTION, QUACK, Grid

COLUMNS = [
    *labels("row", "Run"),
    ATTENTION_COLUMN,
    Column(name="tau", header="tau", kind="label", format="g", narrow=True),
    LOSS,
    TROUBLE,
    ours("rise", "largest rise", ".3f", narrow=True),
    ours("change", "largest mean change", ".3g", narrow=True),
    ours("largest", "largest logit", ".3g", narrow=True),
    ours("ratio_lowest", "lowest ratio of norms", ".3g"),
    ours("ratio_highest", "highest", ".3g"),
    ours("clamped", "limited", "d"),
    *FACTS,
]


def tau(frames: RunFrames, study: Study, published: Published) -> Table:
    """One row for each attention and tau, rising."""
    grid = Grid(frames, study)
    rows = [_row(grid, scale, value, key) for scale in grid.scales for value, key in sorted(grid.wide(scale).items())]
    return make_table(
        "tau",
        f"QuacK at a base rate of {grid.middle_eta:g}, by tau.",
        study,
        key="row",
        columns=COLUMNS,
        rows=rows,
        notes=[
            STABLE_NOTE,
            "A ratio of norms is what a rate was multiplied with beside tau, over all heads, layers and steps: at the "
            "start it is 1, and at most 10 of it is applied (`limited`: how many times it was more).",
            f"{LARGEST_NOTE} Largest mean change: of mean |Δ logit| of the watched head in one step.",
        ],
    )


def _row(grid: Grid, scale: str, value: float, key: str) -> dict[str, Cell]:
    report: dict[str, Any] = grid.report(key, QUACK)
    rise, outcome = grid.rise(key), grid.outcome(key)
    change = grid.curve(key, "logit_change")
    mine = (key,)

    def read(found: float | int | None) -> Cell:
        finite = found is not None and math.isfinite(found)
        return number(found if finite else None, outcome if outcome == "missing" else "not read", mine)

    return {
        "row": Cell(f"{scale}/{value:g}"),
        "label": Cell(f"{ATTENTION[scale]} {grid.study.definition['methods'][QUACK]['label']}"),
        "attention": Cell(ATTENTION[scale]),
        "tau": Cell(value),
        "loss": loss(grid, key),
        "trouble": Cell(grid.trouble(key) or "none", mine),
        "rise": number(rise if math.isfinite(rise) else None, "not read" if math.isnan(rise) else "not finite", mine),
        "change": read(change.max() if len(change) else None),
        "largest": largest_logit(grid, key),
        "ratio_lowest": read(report.get("ratio_lowest")),
        "ratio_highest": read(report.get("ratio_highest")),
        "clamped": read(report.get("ratios_clamped")),
    } | row_facts(grid, scale, mine, key)
