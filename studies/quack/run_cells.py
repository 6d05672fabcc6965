"""Makes cells from runs of the grid, and says what their words mean."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from plumbline.core.run_files import COMPLETED, MISSING
from plumbline.results.tables.shared_columns import fact_cells, number_column, text_column
from plumbline.results.tables.table import Cell, Column, number_cell

from .run_grid import SPIKE, RunGrid

#: What a table says of the word "stable" wherever it uses it.
STABLE_NOTE = (
    f"Stable: the run completed, and no held-out loss after the warm-up is more than {SPIKE:g} nats above the lowest "
    "before it. A diverged run (a loss or gradient that is no number) has no final loss."
)

#: Which tau stands for a method at a base rate.
BEST_NOTE = (
    "Best tau: the lowest final held-out loss among the completed runs at that base rate. It is the best of several "
    "tries, where a method without tau has one."
)

#: Of what the largest logit is.
LARGEST_NOTE = "Largest logit: of all heads and layers on held-out sequences, over all evaluations of a run."

#: Columns of several tables.
ATTENTION_COLUMN = Column(name="attention", header="attention", kind="label")
LOSS = number_column("validation_loss", "loss", ".3f", narrow=True)
TROUBLE = text_column("diverged_or_spiked", "diverged or spiked", narrow=True)


def row_facts(grid: RunGrid, scale: str, keys: Iterable[str | None], source_key: str | None) -> dict[str, Cell]:
    """Make the FACTS cells of a row with several runs, of which `source_key` gave its value."""
    there = tuple(key for key in keys if key is not None)
    outcomes, seeds = [grid.outcome(key) for key in there], int(grid.outcome(source_key) == COMPLETED)
    return fact_cells(grid.frames, grid.study, scale, there, outcomes=outcomes, seeds=seeds)


def loss(grid: RunGrid, key: str | None) -> Cell:
    """Make the cell of a run's final held-out loss, or the word for why it has none."""
    return number_cell(grid.loss(key), grid.outcome(key), () if key is None else (key,))


def largest_logit(grid: RunGrid, key: str | None) -> Cell:
    """Make the cell of the largest scaled score that was read of a run, over heads and layers, or why there is none."""
    curve = pd.Series(dtype=float) if key is None else grid.largest_logit(key)
    outcome = grid.outcome(key)
    word = MISSING if outcome == MISSING else "not read"
    return number_cell(float(curve.max()) if len(curve) else None, word, () if key is None else (key,))
