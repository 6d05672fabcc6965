"""Makes what tables of all studies share: columns beside printed ones, a row's facts, what stands around a table."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    EXACT_NOTE,
    PRESET_NOTES,
    Cell,
    Column,
    Table,
    context,
    interpretations_of,
    joint_outcome,
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


#: What a row of runs says of them.
OUTCOME = Column(name="outcome", header="outcome", kind="fact")
SEEDS = Column(name="n_seeds", header="seeds", kind="fact", format="d")
RUN_IDS = Column(name="run_ids", header="runs", kind="fact", readable=False)
FACTS = [OUTCOME, SEEDS, RUN_IDS, *CONTEXT_ALONE]


def facts(
    frames: RunFrames, study: Study, scale: str, keys: Iterable[str], *, outcomes: Iterable[str], seeds: int
) -> dict[str, Cell]:
    """Make the FACTS cells of a row of runs of one scale.

    Args:
        keys: its runs, `outcomes` how they ended; a run that is not expected has an outcome and no key.
        seeds: how many seeds gave it a value.
    """
    behind = tuple(keys)
    ids = [str(frames.runs.loc[key, "run_id"]) for key in behind]
    return {
        "outcome": Cell(joint_outcome(outcomes), behind),
        "n_seeds": Cell(seeds, behind),
        "run_ids": Cell(" ".join(ids), behind),
    } | context(study, scale)


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
        published: the file of printed numbers beside it, where there is one.
        scores: the frames, of a table that shows scores of tasks.
        demo: what the study's demo is worth, where it was sized to answer something.
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
        notes=[*notes, *notes_of(study, name)],
        warnings=[*warnings, *([EXACT_NOTE] if exact else warnings_of(study, scores, demo=demo))],
        published=published,
        interpretations=interpretations_of(study),
    )
