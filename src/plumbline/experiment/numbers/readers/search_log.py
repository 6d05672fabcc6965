"""Reads the log of a sequential search: one run a row, in the order of time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from plumbline.experiment.numbers.readers.row_files import ColumnNames, FileRows
from plumbline.experiment.numbers.readers.run_statuses import CRASH, DISCARD, KEEP, meaning, unknown


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


def read_search(rows: FileRows, columns: ColumnNames) -> list[SearchLogEntry]:
    """Read the runs of a search's log, in its order.

    Raises:
        PlumblineError: a missing column, a status that is none, a kept run without a finite number.
    """
    rows.require((columns.commit, columns.metric, columns.status), ("--commit-column", "--metric", "--status-column"))
    steps = []
    for row in rows.rows:
        word = rows.text(row, columns.status)
        status = meaning(word)
        if status not in (KEEP, DISCARD, CRASH):
            rows.fail(row, columns.status, unknown(word, KEEP, DISCARD, CRASH))
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
                word=word.strip().lower(),
            )
        )
    return steps
