"""Columns and cells that the study's tables share: a reproduced number beside the printed one, and a row's facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.audit.published import Published
from plumbline.results.runs.finished_runs import COMPLETED
from plumbline.results.tables.layout import surrounded
from plumbline.results.tables.table import Cell, Column, Table, context, joint_outcome, number

from .run_values import RunValues


@dataclass(frozen=True, slots=True)
class Row:
    """Makes the cells of one row: its runs are those of every cell, and give the word where there is no value."""

    run_values: RunValues
    keys: tuple[str | None, ...]
    scale: str

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are expected."""
        return tuple(key for key in self.keys if key is not None)

    def cell(self, value: float | int | None, otherwise: str = "not read", keys: Iterable[str | None] = ()) -> Cell:
        """A value of the row's runs, or of those of them that are named; `otherwise` is why whole runs have none."""
        behind = tuple(keys) or self.keys
        word = self.run_values.word(*behind, otherwise=otherwise)
        return number(value, word, tuple(key for key in behind if key is not None))

    def facts(self, seeds: int | None = None) -> dict[str, Cell]:
        """The FACTS cells; `seeds`: how many seeds have a value (by default one, if all of the row's runs are)."""
        runs, study = self.run_values.frames.runs, self.run_values.study
        outcomes = [self.run_values.outcome(key) for key in self.keys]
        complete = int(all(outcome == COMPLETED for outcome in outcomes)) if seeds is None else seeds
        ids = [str(runs.loc[key, "run_id"]) for key in self.runs]
        return {
            "outcome": Cell(joint_outcome(outcomes), self.runs),
            "n_seeds": Cell(complete, self.runs),
            "run_ids": Cell(" ".join(ids), self.runs),
        } | context(study, self.scale)


def finished(
    name: str,
    title: str,
    run_values: RunValues,
    published: Published,
    *,
    key: str,
    columns: list[Column],
    rows: list[dict[str, Cell]],
    notes: Iterable[str] = (),
    scores: bool = False,
    printed: str = "",
    exact: bool = False,
) -> Table:
    """The table, with the warnings and interpretations that stand around every one.

    Args:
        scores: it shows scores of tasks.
        printed: the file of printed numbers beside it, where it is not of the table's name.
        exact: it is computed alone, and no preset's sizes are in it.
    """
    study = run_values.study
    return surrounded(
        name,
        title,
        study,
        key=key,
        columns=columns,
        rows=rows,
        notes=notes,
        published=printed or published.shown(name),
        scores=run_values.frames if scores else None,
        exact=exact,
    )
