"""Columns and cells that the study's tables share: a reproduced number beside the printed one, and a row's facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.results.published import Published
from plumbline.results.runs import COMPLETED
from plumbline.results.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context,
    joint_outcome,
    notes_of,
    number,
    published_column,
    warnings_of,
)
from plumbline.studies.premature.readings import Readings


def ours(name: str, header: str, how: str, *, readable: bool = True, narrow: bool = False) -> Column:
    """A reproduced number, with its format."""
    return Column(name=name, header=header, kind="reproduced", format=how, readable=readable, narrow=narrow)


def beside(name: str, header: str, how: str, *, readable: bool = True, narrow: bool = False) -> list[Column]:
    """A reproduced number and the printed one beside it."""
    return [
        ours(name, header, how, readable=readable, narrow=narrow),
        published_column(name, header, readable=readable, narrow=narrow),
    ]


def labels(key: str, header: str) -> list[Column]:
    """The row's name and its label."""
    return [
        Column(name=key, header=header, kind="label", readable=False),
        Column(name="label", header=header, kind="label", narrow=True),
    ]


#: What every row says of its runs; a table of scores says its tasks' source besides.
FACTS = [
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="n_seeds", header="seeds", kind="fact", format="d"),
    Column(name="run_ids", header="runs", kind="fact", readable=False),
    *(column for column in CONTEXT if column.name != "task_source"),
]


@dataclass(frozen=True, slots=True)
class Row:
    """Makes the cells of one row: its runs are those of every cell, and give the word where there is no value."""

    readings: Readings
    keys: tuple[str | None, ...]
    scale: str

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are expected."""
        return tuple(key for key in self.keys if key is not None)

    def cell(self, value: float | int | None, otherwise: str = "not read", keys: Iterable[str | None] = ()) -> Cell:
        """A value of the row's runs, or of those of them that are named; `otherwise` is why whole runs have none."""
        behind = tuple(keys) or self.keys
        word = self.readings.word(*behind, otherwise=otherwise)
        return number(value, word, tuple(key for key in behind if key is not None))

    def facts(self, seeds: int | None = None) -> dict[str, Cell]:
        """The FACTS cells; `seeds`: how many seeds have a value (by default one, if all of the row's runs are)."""
        runs, study = self.readings.frames.runs, self.readings.study
        outcomes = [self.readings.outcome(key) for key in self.keys]
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
    readings: Readings,
    published: Published,
    *,
    key: str,
    columns: list[Column],
    rows: list[dict[str, Cell]],
    notes: Iterable[str] = (),
    scores: bool = False,
    printed: str = "",
) -> Table:
    """The table, with the warnings and rulings that stand around every one.

    Args:
        scores: it shows scores of tasks.
        printed: the file of printed numbers beside it, where it is not of the table's name.
    """
    study = readings.study
    return Table(
        name=name,
        title=title,
        study=study.name,
        preset=study.preset,
        key=key,
        columns=columns,
        rows=rows,
        notes=[*notes, *notes_of(study)],
        warnings=warnings_of(study, readings.frames if scores else None),
        published=printed or published.shown(name),
    )
