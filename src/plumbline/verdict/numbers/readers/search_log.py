"""Reads the log of a sequential search: one run a row, in the order of time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from plumbline.verdict.formatting import name
from plumbline.verdict.numbers.readers.row_files import ColumnNames, FileRows, at
from plumbline.verdict.numbers.readers.run_statuses import CRASH, FINISHED, KEEP, RUNNING, RunStatuses, mapping

#: The column that says of how many runs a row is the mean.
SEEDS = "seeds"


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchLogEntry:
    """One run in the log of a search; `value` is None where it crashed or diverged.

    `status` is keep, discard or crash; `word` is what the log says.
    """

    line: int
    commit: str
    value: float | None
    status: str
    description: str
    word: str = ""

    @property
    def configuration(self) -> tuple[str, str]:
        """What was run: a commit and its description. A loop that edits without a commit has one commit for many."""
        return self.commit, re.sub(r"\s+", " ", self.description).strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchLog:
    """The runs of a search's log, in its order; the column of their statuses; sentences about how it was read."""

    runs: list[SearchLogEntry]
    status: str
    notes: tuple[str, ...] = ()


def read_search(rows: FileRows, columns: ColumnNames) -> SearchLog:
    """Read the runs of a search's log, in its order; what has not ended is left out, with a note.

    Rows that are means of several runs, as `plumbline try` writes them into results.tsv, hold those of the same
    configuration before them: of each configuration its last row counts.

    Raises:
        PlumblineError: a missing column, a status that is none, a kept run without a finite number.
    """
    rows.require((columns.commit, columns.metric), ("--commit-column", "--metric"))
    statuses = RunStatuses(rows, columns)
    if not statuses.columns:
        rows.require((columns.status,), ("--status-column",))
    steps, waiting = list[SearchLogEntry](), list[int]()
    for row in rows.rows:
        status, word = statuses.of(row)
        column = next((each for each in statuses.columns if row.cells[each]), statuses.columns[0])
        rows.text(row, column)
        if status == RUNNING:
            waiting.append(row.line)
            continue
        if status == FINISHED:
            rows.fail(
                row,
                column,
                f"{word!r} does not say whether the search kept the change; write keep, discard or crash, or say it "
                f"with {mapping(word, 'discard')}",
            )
        value = None if status == CRASH else rows.number(row, columns.metric)
        if value is not None and not math.isfinite(value):
            if status == KEEP:
                rows.fail(row, columns.metric, "a run that was kept has no finite number; correct its status or value")
            value, status = None, CRASH
        steps.append(
            SearchLogEntry(
                line=row.line,
                commit=rows.text(row, columns.commit),
                value=value,
                status=status,
                description=row.cells.get("description", ""),
                word=word,
            )
        )
    notes = []
    if waiting:
        notes.append(f"Left out, since it has not ended: {at(waiting)}.")
    if any(rows.number(row, SEEDS) > 1 for row in rows.rows if row.cells.get(SEEDS)):
        last = {step.configuration: step for step in steps}
        notes.append(
            f"By column {name(SEEDS)} a row is a mean of several runs, which is judged as one run: that errs towards "
            "not decided. Of a configuration its last row counts, and none is a repeat: sigma of one run is of "
            "elsewhere (--sigma). What was decided with the runs themselves: plumbline log."
        )
        steps = [step for step in steps if last[step.configuration] is step]
    return SearchLog(runs=steps, status=statuses.columns[0], notes=tuple(notes))
