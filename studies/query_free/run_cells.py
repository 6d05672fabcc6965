"""Makes cells from runs by their method."""

from __future__ import annotations

from plumbline.core.run_files import COMPLETED, MISSING
from plumbline.results.tables.shared_columns import fact_cells
from plumbline.results.tables.table import Cell, number_cell

from .run_values import SCALE, RunValues


def make_cell(values: RunValues, result: float, *methods: str) -> Cell:
    """Make the cell of a number that some runs gave, or the word for why they gave none."""
    return number_cell(result, values.word(*methods) or MISSING, values.keys(*methods))


def run_facts(values: RunValues, method: str) -> dict[str, Cell]:
    """Make the FACTS cells of a method's run."""
    keys, outcome = values.keys(method), values.outcome(method)
    seeds = int(outcome == COMPLETED)
    return fact_cells(values.frames, values.study, SCALE, keys, outcomes=[outcome], seeds=seeds)
