"""Makes what tables of several studies share: columns next to the printed ones, the facts of a row, notes around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import (
    CONTEXT,
    EXACT_NOTE,
    Cell,
    Column,
    Table,
    notes_of,
    published_column,
    warnings_of,
)
from plumbline.specs.study_config import Study


def ours(name: str, header: str, how: str, *, readable: bool = True, narrow: bool = False, noise: str = "") -> Column:
    """Make a column of reproduced numbers.

    `how` is their format, `noise` the column of their standard deviation over seeds.
    """
    return Column(
        name=name, header=header, kind="reproduced", format=how, readable=readable, narrow=narrow, noise=noise
    )


def said(name: str, header: str, *, readable: bool = True, narrow: bool = False) -> Column:
    """Make a column of reproduced words."""
    return Column(name=name, header=header, kind="reproduced", readable=readable, narrow=narrow)


def beside(
    name: str, header: str, how: str, *, readable: bool = True, narrow: bool = False, noise: str = ""
) -> list[Column]:
    """Make a column of reproduced numbers and the column of printed ones beside it."""
    return [
        ours(name, header, how, readable=readable, narrow=narrow, noise=noise),
        published_column(name, header, readable=readable, narrow=narrow),
    ]


def labels(key: str, header: str) -> list[Column]:
    """Make the two columns that name a row: its key, and its label for people."""
    return [
        Column(name=key, header=header, kind="label", readable=False),
        Column(name="label", header=header, kind="label", narrow=True),
    ]


#: What a row of no scores says of itself, and what a row of runs says of them besides.
CONTEXT_ALONE = [column for column in CONTEXT if column.name != "task_source"]
FACTS = [
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="n_seeds", header="seeds", kind="fact", format="d"),
    Column(name="run_ids", header="runs", kind="fact", readable=False),
    *CONTEXT_ALONE,
]


def surrounded(
    name: str,
    title: str,
    study: Study,
    *,
    key: str,
    columns: Sequence[Column],
    rows: list[dict[str, Cell]],
    notes: Iterable[str],
    published: str | None,
    scores: RunFrames | None = None,
    exact: bool = False,
) -> Table:
    """Make a table with the warnings and interpretations that stand around every one.

    Args:
        published: the file of printed numbers beside it, where there is one.
        scores: the frames, of a table that shows scores of tasks.
        exact: it is computed alone, and no preset's sizes are in it.
    """
    return Table(
        name=name,
        title=title,
        study=study.name,
        preset=study.preset,
        key=key,
        columns=list(columns),
        rows=rows,
        notes=[*notes, *notes_of(study)],
        warnings=[EXACT_NOTE] if exact else warnings_of(study, scores),
        published=published,
    )
