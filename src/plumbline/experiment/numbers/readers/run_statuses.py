"""Finds the column that says how each run ended, and translates the words of loops, trackers and schedulers.

Four things are kept apart: a run that finished has a value; one that crashed, was killed, pruned or ended by a limit
has none, which is its method's outcome; one that runs or waits has none yet; and an unknown word is refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from plumbline.core.errors import PlumblineError, nearest
from plumbline.experiment.formatting import listed, name
from plumbline.experiment.numbers.readers.row_files import ColumnNames, FileRow, FileRows

KEEP, DISCARD, CRASH, RUNNING, FINISHED = "keep", "discard", "crash", "running", "finished"

#: Meaning -> words of loops, trackers (W&B, MLflow, Optuna) and schedulers (SLURM), in lower case, with `_` for spaces.
WORDS = {
    KEEP: "keep kept accept accepted baseline best improved provisional tentative",
    DISCARD: "discard discarded implausible neutral reject rejected revert reverted undecided worse",
    CRASH: "crash crashed aborted boot_fail canceled cancelled deadline diverged error errored evicted fail failed "
    "failure inf interrupted killed nan node_fail oom oomkilled oom_killed out_of_memory preempted pruned revoked "
    "timed_out timeout",
    RUNNING: "running active completing configuring created in_progress paused pending preempting queued requeued "
    "resizing scheduled starting submitted suspended waiting",
    FINISHED: "finished complete completed done ok passed published succeeded success successful",
}
MEANING = {word: meaning for meaning, words in WORDS.items() for word in words.split()}
#: Names of a column of statuses, in lower case.
NAMES = ("status", "state")
#: Words that other columns have too: they make no column one of statuses.
_COMMON = frozenset(("active", "created", "inf", "nan", "ok", "passed", "published"))


class RunStatus(NamedTuple):
    """How a run ended: `KEEP`, `DISCARD`, `CRASH`, `RUNNING` or `FINISHED`, and the word that says so ("" for none)."""

    meaning: str
    word: str


def translated(word: str) -> str | None:
    """Return what a word says of a run; None of an unknown one.

    ``TrialState.PRUNED``, ``CANCELLED by 1000``, ``Timed out`` and ``OUT_OF_ME+`` are as their programs write them.
    """
    plain = re.sub(r"[\s_-]+", "_", re.sub(r"\s+by\s+\S+$", "", word.strip().lower().rpartition(".")[2]))
    if plain.endswith("+"):  # cut by the width of a column
        whole = {meaning for each, meaning in MEANING.items() if each.startswith(plain[:-1])}
        return whole.pop() if len(whole) == 1 else None
    return MEANING.get(plain)


def status_map(pairs: list[str]) -> dict[str, str]:
    """Read ``WORD=MEANING`` of a command line: word in lower case -> what it says of a run.

    Raises:
        PlumblineError: one is no such pair, its meaning is not known, or a word has two.
    """
    read: dict[str, str] = {}
    for pair in pairs:
        word, _, known = pair.rpartition("=")
        meaning = translated(known)
        if not word.strip() or meaning is None:
            raise PlumblineError(f"--status-map {pair!r}: write WORD=MEANING, as in stopped=crashed ({_meanings()})")
        if read.setdefault(word.strip().lower(), meaning) != meaning:
            raise PlumblineError(f"--status-map gives {word!r} two meanings; leave one of them")
    return read


class RunStatuses:
    """The statuses of a file's runs.

    `columns` are those that hold them: the one that was named; else each whose name is `status` or `state`, in whatever
    case, and each that holds words of statuses alone.

    Raises:
        PlumblineError: the column that was named is not there.
    """

    def __init__(self, rows: FileRows, columns: ColumnNames) -> None:
        self._rows, self._map = rows, columns.status_map
        self._read: dict[str, str | None] = {"": FINISHED}
        if columns.status != ColumnNames().status:
            self.columns: tuple[str, ...] = (columns.status,) if columns.status else ()
            rows.require(self.columns, ["--status-column"] * len(self.columns))
            return
        others = {columns.method, columns.seed, columns.metric, columns.step, columns.value, columns.commit}
        others |= {"metric", "description"}
        free = [column for column in rows.columns if column not in others]
        named = [column for column in free if column.rpartition(".")[2].strip().lower() in NAMES]
        self.columns = tuple(each for each in free if each in named or self._holds_statuses(each))

    def of(self, row: FileRow) -> RunStatus:
        """Return how a run ended; `FINISHED` without a word where nothing says so.

        Raises:
            PlumblineError: a word is not known, or two columns contradict each other.
        """
        status, column = RunStatus(FINISHED, ""), ""
        for each in self.columns:
            if not (word := row.cells.get(each, "")):
                continue
            if (meaning := self._meaning(word)) is None:
                self._refuse_unknown(row, each, word)
            if column and _ended(meaning) != _ended(status.meaning):
                self._rows.fail(
                    row,
                    each,
                    f"{word!r} contradicts {status.word!r} of column {column!r}; name one with --status-column",
                )
            if not column or status.meaning == FINISHED:
                status, column = RunStatus(meaning, word.lower()), each
        return status

    def keeps(self) -> bool:
        """Whether some row says that its run was kept, as the log of a search does."""
        return any(self._meaning(row.cells.get(each, "")) == KEEP for each in self.columns for row in self._rows.rows)

    def note(self) -> list[str]:
        """Say which columns were read as statuses, where that is not plain from their name."""
        unusual = [each for each in self.columns if each != ColumnNames().status]
        words = "column says how its run ended" if len(unusual) == 1 else "columns say how its run ended"
        return [f"{listed([name(each) for each in unusual])}: this {words}."] if unusual else []

    def _meaning(self, word: str) -> str | None:
        if word not in self._read:
            self._read[word] = self._map.get(word.lower()) or translated(word)
        return self._read[word]

    def _holds_statuses(self, column: str) -> bool:
        telling = False
        for row in self._rows.rows:
            word = row.cells.get(column, "")
            meaning = self._meaning(word)
            if meaning is None:
                return False
            telling = telling or (meaning in (CRASH, RUNNING, FINISHED) and word.lower() not in (*_COMMON, ""))
        return telling

    def _refuse_unknown(self, row: FileRow, column: str, word: str) -> NoReturn:
        self._rows.fail(
            row,
            column,
            f"{word!r} is no status that is known{nearest(word.lower(), MEANING)}; say what it means with --status-map "
            f"{word}=crashed ({_meanings()}), or name another column with --status-column ('' for none)",
        )


def _ended(meaning: str) -> str:
    """What two columns must agree in: a run that was kept or discarded has finished."""
    return meaning if meaning in (CRASH, RUNNING) else FINISHED


def _meanings() -> str:
    return "meanings: crashed, running, finished; of a search's log also keep, discard"
