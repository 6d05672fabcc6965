"""Columns and cells that the study's tables share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbline.audit.published import Published
from plumbline.results.runs.finished_runs import COMPLETED, MISSING
from plumbline.results.tables.layout import surrounded
from plumbline.results.tables.table import Cell, Column, Table, context, number
from plumbline.specs.study_config import Study

from .losses import SCALE, Losses


def value(losses: Losses, found: float, *methods: str) -> Cell:
    """A number that some runs gave, or why they gave none."""
    return number(found, losses.word(*methods) or MISSING, losses.keys(*methods))


def facts(losses: Losses, method: str) -> dict[str, Cell]:
    """The FACTS cells of a method's run."""
    keys, outcome = losses.keys(method), losses.outcome(method)
    ids = [str(losses.frames.runs.loc[key, "run_id"]) for key in keys]
    return {
        "outcome": Cell(outcome, keys),
        "n_seeds": Cell(int(outcome == COMPLETED), keys),
        "run_ids": Cell(" ".join(ids), keys),
    } | context(losses.study, SCALE)


def finished(
    name: str,
    title: str,
    study: Study,
    published: Published,
    *,
    key: str,
    columns: Sequence[Column],
    rows: list[dict[str, Cell]],
    notes: Iterable[str] = (),
    printed: str = "",
    exact: bool = False,
) -> Table:
    """The table, with the warnings and interpretations that stand around every one.

    Args:
        printed: the file of printed numbers beside it, where it is not of the table's name.
        exact: it is computed alone, and no preset's sizes are in it.
    """
    return surrounded(
        name,
        title,
        study,
        key=key,
        columns=columns,
        rows=rows,
        notes=notes,
        published=printed or published.shown(name),
        exact=exact,
    )
