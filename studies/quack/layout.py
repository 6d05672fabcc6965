"""Columns and cells that the study's tables share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from plumbline.audit.published import Published
from plumbline.results.runs.finished_runs import COMPLETED, MISSING
from plumbline.results.tables.layout import surrounded
from plumbline.results.tables.table import Cell, Column, Table, context, joint_outcome, number
from plumbline.specs.study_config import Study

from .grid import ATTENTION, SPIKE, Grid

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


def facts(grid: Grid, scale: str, keys: Iterable[str | None], shown: str | None) -> dict[str, Cell]:
    """The FACTS cells of a row with several runs, of which `shown` gave its value."""
    there = tuple(key for key in keys if key is not None)
    ids = [str(grid.frames.runs.loc[key, "run_id"]) for key in there]
    return {
        "outcome": Cell(joint_outcome(grid.outcome(key) for key in there), there),
        "n_seeds": Cell(int(grid.outcome(shown) == COMPLETED), there),
        "run_ids": Cell(" ".join(ids), there),
    } | context(grid.study, scale)


def loss(grid: Grid, key: str | None) -> Cell:
    """A run's final held-out loss, or why it has none."""
    return number(grid.loss(key), grid.outcome(key), () if key is None else (key,))


def largest_logit(grid: Grid, key: str | None) -> Cell:
    """The largest scaled score of all heads and layers that was read of a run, or why there is none."""
    curve = pd.Series(dtype=float) if key is None else grid.largest_logit(key)
    outcome = grid.outcome(key)
    word = MISSING if outcome == MISSING else "not read"
    return number(float(curve.max()) if len(curve) else None, word, () if key is None else (key,))


def attention(scale: str) -> str:
    """What readers call a scale's attention."""
    return ATTENTION[scale]


def finished(
    name: str,
    title: str,
    study: Study,
    *,
    key: str,
    columns: Sequence[Column],
    rows: list[dict[str, Cell]],
    notes: Iterable[str] = (),
    published: Published | None = None,
    printed: str = "",
    exact: bool = False,
) -> Table:
    """The table, with the warnings and interpretations that stand around every one.

    Args:
        published, printed: the file of printed numbers beside it, where there is one.
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
        published=None if published is None else published.shown(printed),
        exact=exact,
    )
