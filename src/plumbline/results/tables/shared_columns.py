"""Makes what tables of all studies share: columns next to printed ones, a row's facts, warnings and notes."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    EXACT_NOTE,
    Cell,
    Column,
    Table,
    context_cells,
    list_interpretations,
    make_published_column,
    summarize_outcomes,
    write_interpretations_note,
    write_warnings,
)
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import PRESET_NOTES


def number_column(
    name: str, header: str, number_format: str, *, readable: bool = True, narrow: bool = False, noise: str = ""
) -> Column:
    """Make a column of reproduced numbers.

    `number_format` is their format, `noise` the column of their standard deviation over seeds.
    """
    return Column(
        name=name, header=header, kind="reproduced", format=number_format, readable=readable, narrow=narrow, noise=noise
    )


def text_column(name: str, header: str, *, readable: bool = True, narrow: bool = False) -> Column:
    """Make a column of reproduced texts."""
    return Column(name=name, header=header, kind="reproduced", readable=readable, narrow=narrow)


def column_pair(
    name: str, header: str, number_format: str, *, readable: bool = True, narrow: bool = False, noise: str = ""
) -> list[Column]:
    """Make a column of reproduced numbers and the column of printed ones next to it."""
    return [
        number_column(name, header, number_format, readable=readable, narrow=narrow, noise=noise),
        make_published_column(name, header, readable=readable, narrow=narrow),
    ]


def setting_pair(name: str, header: str, number_format: str) -> list[Column]:
    """Make a column of numbers that runs are set to, and the column of printed ones next to it."""
    return [
        Column(name=name, header=header, kind="fact", format=number_format),
        make_published_column(name, header),
    ]


def label_columns(key: str, header: str) -> list[Column]:
    """Make the two columns that name a row: its key, and its label for people."""
    return [
        Column(name=key, header=header, kind="label", readable=False),
        Column(name="label", header=header, kind="label", narrow=True),
    ]


#: The columns of facts on the runs of a row.
OUTCOME = Column(name="outcome", header="outcome", kind="fact")
SEEDS = Column(name="n_seeds", header="seeds", kind="fact", format="d")
RUN_IDS = Column(name="run_ids", header="runs", kind="fact", readable=False)
FACTS = [OUTCOME, SEEDS, RUN_IDS, *CONTEXT_ALONE]


def fact_cells(
    frames: RunFrames, study: Study, scale: str, keys: Iterable[str], *, outcomes: Iterable[str], seeds: int
) -> dict[str, Cell]:
    """Make the FACTS cells of a row of runs of one scale.

    Args:
        keys: its runs, `outcomes` how they ended; a run that is not expected has an outcome and no key.
        seeds: how many seeds gave it a value.
    """
    row_keys = tuple(keys)
    ids = [str(frames.runs.loc[key, "run_id"]) for key in row_keys]
    return {
        "outcome": Cell(summarize_outcomes(outcomes), row_keys),
        "n_seeds": Cell(seeds, row_keys),
        "run_ids": Cell(" ".join(ids), row_keys),
    } | context_cells(study, scale)


def make_table(
    name: str,
    title: str,
    study: Study,
    *,
    key: str,
    columns: Iterable[Column],
    rows: list[dict[str, Cell]],
    notes: Iterable[str] = (),
    warnings: Iterable[str] = (),
    published: str | None = None,
    scores: RunFrames | None = None,
    demo: str = PRESET_NOTES["demo"],
    exact: bool = False,
) -> Table:
    """Make a table of a study; the warnings and interpretations that stand around every one follow its own.

    Args:
        published: the file of printed numbers next to it, if there is one.
        scores: the frames, of a table that shows scores of tasks.
        demo: the study's own note on what its demo can show.
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
        notes=[*notes, *write_interpretations_note(study, name)],
        warnings=[*warnings, *([EXACT_NOTE] if exact else write_warnings(study, scores, demo=demo))],
        published=published,
        interpretations=list_interpretations(study),
    )
