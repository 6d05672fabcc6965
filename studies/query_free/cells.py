"""Makes cells from runs by their method."""

from __future__ import annotations

from plumbline.results.runs.finished_runs import COMPLETED, MISSING
from plumbline.results.tables.layout import facts
from plumbline.results.tables.table import Cell, number

from .losses import SCALE, RunLosses


def value(losses: RunLosses, found: float, *methods: str) -> Cell:
    """Make the cell of a number that some runs gave, or the word for why they gave none."""
    return number(found, losses.word(*methods) or MISSING, losses.keys(*methods))


def run_facts(losses: RunLosses, method: str) -> dict[str, Cell]:
    """Make the FACTS cells of a method's run."""
    keys, outcome = losses.keys(method), losses.outcome(method)
    seeds = int(outcome == COMPLETED)
    return facts(losses.frames, losses.study, SCALE, keys, outcomes=[outcome], seeds=seeds)
