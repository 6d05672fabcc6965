"""Columns and cells that the study's tables share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbline.results.published import Published
from plumbline.results.runs import COMPLETED, MISSING
from plumbline.results.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context,
    notes_of,
    number,
    published_column,
    warnings_of,
)
from plumbline.specs.sheet import Study
from plumbline.studies.query_free.losses import SCALE, Losses


def ours(name: str, header: str, how: str, *, readable: bool = True, narrow: bool = False) -> Column:
    """A reproduced number, with its format."""
    return Column(name=name, header=header, kind="reproduced", format=how, readable=readable, narrow=narrow)


def beside(name: str, header: str, how: str, *, narrow: bool = False) -> list[Column]:
    """A reproduced number and the printed one beside it."""
    return [ours(name, header, how, narrow=narrow), published_column(name, header, narrow=narrow)]


def labels(key: str, header: str) -> list[Column]:
    """The row's name and its label."""
    return [
        Column(name=key, header=header, kind="label", readable=False),
        Column(name="label", header=header, kind="label", narrow=True),
    ]


#: What every row of runs says of them, and every row of this study of the preset.
CONTEXT_ALONE = [column for column in CONTEXT if column.name != "task_source"]
FACTS = [
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="n_seeds", header="seeds", kind="fact", format="d"),
    Column(name="run_ids", header="runs", kind="fact", readable=False),
    *CONTEXT_ALONE,
]


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
) -> Table:
    """The table, with the warnings and rulings that stand around every one.

    Args:
        printed: the file of printed numbers beside it, where it is not of the table's name.
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
        warnings=warnings_of(study),
        published=printed or published.shown(name),
    )
