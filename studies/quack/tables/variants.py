"""Makes the table of variants: other interpretations of what the summary leaves open, each next to the run that it is a
variant of.

Source: interpretations of studies/quack/study.yaml. Not a table of the summary, which says what came of one alone
(spectral norms).
"""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.specs.study_config import Study

from ..run_cells import ATTENTION_COLUMN, LARGEST_NOTE, LOSS, STABLE_NOTE, TROUBLE, largest_logit, loss, row_facts
from ..run_grid import ATTENTION, DIFFERENT, RunGrid

COLUMNS = [
    *label_columns("variant", "Variant"),
    ATTENTION_COLUMN,
    LOSS,
    number_column("validation_loss_default", "default variant's loss", ".3f", narrow=True),
    number_column("loss_minus_default", "Δ", "+.3f", narrow=True),
    TROUBLE,
    text_column("diverged_or_spiked_default", "default variant diverged or spiked"),
    number_column("largest_logit", "largest logit", ".3g"),
    number_column("largest_logit_default", "default variant's largest logit", ".3g"),
    Column(name="description", header="description", kind="label"),
    *FACTS,
]


def variants(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each variant and attention that has a run of it."""
    grid = RunGrid(frames, study)
    rows = [_row(grid, scale, method, key) for scale in grid.scales for method, key in grid.variants(scale).items()]
    return make_table(
        "variants",
        f"Other variants at a base rate of {grid.middle_eta:g} (of QuacK at tau = 1), beside the default ones.",
        study,
        key="variant",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"One seed: differences below {DIFFERENT:g} nats count as none (interpretation slightly).",
            STABLE_NOTE,
            LARGEST_NOTE,
        ],
    )


def _row(grid: RunGrid, scale: str, method: str, key: str) -> dict[str, Cell]:
    name, _, variant = method.partition(".")
    other = grid.read_from(scale, method)
    difference = grid.loss(key) - grid.loss(other)
    both = (key, *([other] if other else []))
    entry = grid.study.definition["methods"][name]["variants"][variant]
    return {
        "variant": Cell(f"{scale}/{method}"),
        "label": Cell(f"{ATTENTION[scale]} {grid.study.label(method)}"),
        "attention": Cell(ATTENTION[scale]),
        "validation_loss": loss(grid, key),
        "validation_loss_default": loss(grid, other),
        "loss_minus_default": number_cell(difference if not math.isnan(difference) else None, grid.word(both), both),
        "diverged_or_spiked": Cell(grid.trouble(key) or "none", (key,)),
        "diverged_or_spiked_default": Cell((grid.trouble(other) if other else grid.outcome(other)) or "none", both[1:]),
        "largest_logit": largest_logit(grid, key),
        "largest_logit_default": largest_logit(grid, other),
        "description": Cell(entry["note"].strip()),
    } | row_facts(grid, scale, (key,), key)
