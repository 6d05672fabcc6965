"""Finds the column that says how each run ended, and translates the words of loops, trackers and schedulers.

Four things are kept apart: a run that finished has a value; one that crashed, was killed, pruned or ended by a limit
has none, which is its method's outcome; one that runs or waits has none yet; and an unknown word is refused.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple, NoReturn

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import CRASH, DISCARD, FINISHED, KEEP, RUNNING
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.sources import failure_columns
from plumbline.verdict.sources.column_names import (
    ERRORS,
    EXIT_CODES,
    FLAGS,
    OF_A_RUN,
    STATUSES,
    find_ending,
    names_an_end,
    quote_columns,
    split_name,
)
from plumbline.verdict.sources.row_files import QUOTES, ColumnNames, FileRow, FileRows, name_lines, parse_float

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
#: What a message names of them.
_MEANINGS = "meanings: crashed, running, finished; of a search's log also keep, discard"
#: Words that other columns have too: they make no column one of statuses.
_COMMON = frozenset(("active", "created", "inf", "nan", "ok", "passed", "published"))
#: Words of lost runs and of others that name a configuration too: a network is pruned, a link suspended.
_CHOSEN = _COMMON | {"deadline", "interrupted", "paused", "pruned", "revoked", "scheduled", "suspended", "waiting"}

#: Exit codes of programs that were interrupted, aborted, killed or terminated, or read what is not theirs; another
#: number of all runs of a method, each with a value, is a setting.
_KILLED = frozenset(("130", "134", "137", "139", "143"))


class RunStatus(NamedTuple):
    """How a run ended: `KEEP`, `DISCARD`, `CRASH`, `RUNNING` or `FINISHED`, and the word for it ("" for none)."""

    meaning: str
    word: str


@cache
def translate_status(word: str) -> str | None:
    """Return what a word states of a run; None of an unknown one.

    ``TrialState.PRUNED``, ``CANCELLED by 1000``, ``Timed out`` and ``OUT_OF_ME+`` are as their programs write them.
    """
    normal_word = _normalize(re.sub(r"\s+by\s+\S+$", "", word.strip()))
    if normal_word.endswith("+"):  # cut by the width of a column
        meanings = {meaning for each, meaning in MEANING.items() if each.startswith(normal_word[:-1])}
        return meanings.pop() if len(meanings) == 1 else None
    return MEANING.get(normal_word)


def parse_status_map(pairs: list[str]) -> dict[str, str]:
    """Read ``WORD=MEANING`` of a command line: word in lower case -> what it says of a run.

    Raises:
        PlumblineError: one is no such pair, its meaning is not known, or a word has two.
    """
    mapping: dict[str, str] = {}
    for pair in pairs:
        word, _, meaning_word = pair.rpartition("=")
        meaning = translate_status(meaning_word)
        if not word.strip() or meaning is None:
            raise PlumblineError(f"--status-map {pair!r}: write WORD=MEANING, as in stopped=crashed ({_MEANINGS})")
        if mapping.setdefault(word.strip().lower(), meaning) != meaning:
            raise PlumblineError(f"--status-map gives {word!r} two meanings; leave one of them")
    return mapping


class RunStatuses:
    """The statuses of a file's runs.

    `columns` are those that hold them: the one that was named; else each whose name ends in the word status or state,
    each of yes and no that is called failed, crashed or the like, each of exit codes, each that is called error and
    has texts of some runs, and each that holds words of statuses alone. One whose words are constant within each
    method, with a value of every run, is a configuration: told, and not read. Told is also a text that says of a run
    with a value that it failed.

    Raises:
        PlumblineError: the column that was named is not there; or one looks like statuses, and does not show it.
    """

    def __init__(self, rows: FileRows, columns: ColumnNames) -> None:
        self._rows, self._map = rows, columns.status_map
        self._notes: dict[str, str] = {}
        self._unread: list[str] = []
        self._method, self._seed = columns.method if columns.method in rows.columns else "", columns.seed
        self._value = columns.value if {columns.value, "metric"} <= {*rows.columns} else columns.metric
        if columns.status != ColumnNames().status:
            self.columns: tuple[str, ...] = (columns.status,) if columns.status else ()
            rows.require(self.columns, ["--status-column"] * len(self.columns))
            self._read_kinds(self.columns, is_named=True)
            return
        other_columns = {columns.method, columns.seed, columns.metric, columns.step, columns.value, columns.commit}
        names = [each for each in rows.columns if each not in other_columns | {"metric", "description"}]
        self._read_kinds(names)
        kinds = {*self._flags, *self._exit_codes, *self._errors}
        sure_names = [each for each in names if each in kinds or self._is_named(each)]
        self.columns = tuple(
            each for each in names if each in sure_names or self._holds_statuses(each, bool(sure_names))
        )
        self._unread = [each for each in names if each not in self.columns]

    def _read_kinds(self, columns: Iterable[str], *, is_named: bool = False) -> None:
        """Find the columns of yes and no (lost runs alone may be marked), of exit codes, and of errors among some.

        Raises:
            PlumblineError: a flag is the same of all runs of a method, each with a value, and no setting by its name.
        """
        cells = {each: self._first_rows(each) for each in columns}
        self._exit_codes = {each for each, texts in cells.items() if self._holds_exit_codes(each, texts)}
        self._flags: dict[str, tuple[str, str]] = {}
        for each, texts in cells.items():
            says_end = failure_columns.names_an_end_alone(each)
            marks_lost = says_end and not all(row.cells.get(each) for row in self._rows.rows)
            flag = failure_columns.find_flag(each, texts, is_named=is_named or marks_lost)
            if each in self._exit_codes or flag is None:
                continue
            yes_words = [word for word in texts if word.lower() in failure_columns.YES]
            if not is_named and not find_ending(each, FLAGS) and self._is_setting(each, yes_words):
                if says_end:
                    problem = f"{yes_words[0]!r} is said of runs that all have a value"
                    self._refuse_unclear(each, texts[yes_words[0]], problem)
                self._note_unread(each, yes_words)  # `skip_nan`
            else:
                self._flags[each] = flag
        self._errors = {each for each in cells if each not in self._flags and self._holds_errors(each)}

    def read_status(self, row: FileRow) -> RunStatus:
        """Return how a run ended; `FINISHED` without a word where nothing states so.

        Raises:
            PlumblineError: a word is not known, or two columns contradict each other.
        """
        status, column = RunStatus(FINISHED, ""), ""
        for each in self.columns:
            word = row.cells[each]
            if not word or (word.lower() == "inactive" and any(row.cells[flag] for flag in self._flags)):
                continue  # an inactive run may have failed, which another column says
            if (meaning := self._translate(word, each)) is None:
                self._refuse_unknown(row, each, word)
            if not meaning:
                continue
            if column and _merge_finished(meaning) != _merge_finished(status.meaning):
                self._rows.fail(
                    row,
                    each,
                    f"{word!r} contradicts {status.word!r} of column {column!r}; name one with --status-column",
                )
            if not column or status.meaning == FINISHED:
                status, column = RunStatus(meaning, self._name_reason(each, word)), each
        return status

    def keeps(self) -> bool:
        """Whether some row states that its run was kept, as the log of a search does."""
        return any(self._translate(row.cells[each]) == KEEP for each in self.columns for row in self._rows.rows)

    def list_read(self) -> list[str]:
        """State which columns were read as statuses, where that is not plain from their name."""
        unusual_columns = [each for each in self.columns if each != ColumnNames().status]
        subject = "this column says" if len(unusual_columns) == 1 else "these columns say"
        return [f"{quote_columns(unusual_columns)}: {subject} how its run ended."] * bool(unusual_columns)

    def list_unread(self) -> list[str]:
        """State which cells could say how a run ended, and were not read so."""
        counted_rows = [row for row in self._rows.rows if self.read_status(row).meaning not in (CRASH, RUNNING)]
        return [
            *self._notes.values(),
            *filter(None, (self._describe_unread(each, counted_rows) for each in self._unread)),
        ]

    def _describe_unread(self, column: str, counted_rows: Sequence[FileRow]) -> str:
        """State what a column that was not read says of runs that count; empty if it is none of their end."""
        if column in self._notes:
            return ""
        texts = self._first_rows(column)
        is_of_an_end = (
            names_an_end(column)
            or failure_columns.may_hold_exit_codes(column, texts)
            or failure_columns.counts_nans(column, texts, varies=self._varies(column))
        )
        if is_of_an_end and len({row.cells[column] for row in self._rows.rows}) > 1:
            return self._write_unread(column, texts, texts.values())
        if self._method and not self._varies(column):
            return ""  # a configuration
        failed_rows = [
            row
            for row in counted_rows
            if failure_columns.FAILURE.search(word := row.cells[column]) and parse_float(word) is None
        ]
        return self._write_unread(column, [row.cells[column] for row in failed_rows], failed_rows)

    def _name_reason(self, column: str, word: str) -> str:
        """What is told of a run: the name of a column of yes and no, an exit code with its name, or the word itself."""
        if column in self._flags:
            name = failure_columns.name_flag(column)
            return name if word.lower() in failure_columns.YES else f"{name}: {word.lower()}"
        if column in self._errors:
            return f"{column}: {word[:60]}"
        return f"{column} {word}" if column in self._exit_codes else word.lower()

    def _translate(self, word: str, column: str = "") -> str | None:
        """What a word says of a run; "" if it leaves open how that ended, None of an unknown word."""
        if column in self._errors and word.lower() in failure_columns.NO_ERROR:
            return ""
        if word.lower() in self._map:
            return self._map[word.lower()]
        if column in self._flags:
            return self._flags[column][word.lower() not in failure_columns.YES]
        if column in self._exit_codes:
            return failure_columns.translate_exit_code(word)
        if column in self._errors:
            return CRASH
        if word.lower() == "terminated" and re.fullmatch(r"trial[\W_]?status", column, re.IGNORECASE):
            return FINISHED  # Ray Tune's word for a trial that went to its end
        return translate_status(word)

    def _holds_exit_codes(self, column: str, words: Collection[str]) -> bool:
        if find_ending(column, EXIT_CODES) and failure_columns.are_exit_codes(words):
            return True
        if not failure_columns.may_hold_exit_codes(column, words):
            return False
        # Where no run ended well by it, it is another thing: the layer of an early exit, a signal's level.
        cells = {row.cells[column] for row in self._rows.rows}
        ended_well = any(not cell or failure_columns.translate_exit_code(cell) == FINISHED for cell in cells)
        is_killed = failure_columns.are_killed(words) and not (
            self._is_configuration(column) and _KILLED.isdisjoint(word.partition(".")[0] for word in words)
        )
        return failure_columns.names_signals(words) or (ended_well and (self._varies(column) or is_killed))

    def _first_rows(self, column: str) -> dict[str, FileRow]:
        """The words of a column, each with its first row."""
        cells: dict[str, FileRow] = {}
        for row in self._rows.rows:
            if word := row.cells[column]:
                cells.setdefault(word, row)
        return cells

    def _holds_errors(self, column: str) -> bool:
        """Whether a column holds what runs failed with: texts of some runs, by its name.

        Raises:
            PlumblineError: they are the same of all runs of a method, as a configuration is, and name no failure.
        """
        cells = self._first_rows(column)
        texts = [word for word in cells if word.lower() not in failure_columns.NO_ERROR]
        if not find_ending(column, ERRORS) or not texts or any(parse_float(text) is not None for text in texts):
            return False
        are_failures = all(map(failure_columns.FAILURE.search, texts))
        if not are_failures and not self._varies(column):
            if all(row.cells[column] for row in self._rows.rows):
                return False
            self._refuse_unclear(column, cells[texts[0]], f"{texts[0]!r} may be a setting")
        return True

    def _is_named(self, column: str) -> bool:
        """Whether a column is one of statuses by its name; the numbers of a `random_state` are none."""
        parts = split_name(column)
        if not (parts and (parts[-1] in STATUSES or parts[-1].endswith("status"))):
            return False
        if len(parts) == 1 or parts[-2] in OF_A_RUN:
            return True
        texts = self._first_rows(column)
        if parts[-1] == "state" and not any(self._translate(word) for word in texts):
            return False  # of the country (`us_state`), of the optimizer
        return any(parse_float(text) is None for text in texts)

    def _holds_statuses(self, column: str, has_other: bool) -> bool:
        """Whether a column holds statuses by its words; `has_other`: the name of another column states that it does.

        Raises:
            PlumblineError: it looks like statuses, but has other words too, or all lost runs have a value.
        """
        cells = self._first_rows(column)
        meanings = {word: self._translate(word) for word in cells}
        outcome_words = {word for word, means in meanings.items() if means in (CRASH, RUNNING, FINISHED)}
        if all(word.lower() in _COMMON for word in outcome_words):
            return False
        lost_words = {word for word in outcome_words if meanings[word] in (CRASH, RUNNING)}
        sure_words = {word for word in lost_words if _normalize(word) not in _CHOSEN}
        unknown_words = [word for word, means in meanings.items() if means is None]
        if unknown_words:
            if sure_words and 2 * len(unknown_words) <= len(cells):
                self._refuse_unclear(
                    column, cells[unknown_words[0]], f"{unknown_words[0]!r} is no status that is known"
                )
            if lost_words:
                self._note_unread(column, sorted(lost_words))
            return False
        if not lost_words or not self._method or (has_other and sure_words):
            return True
        lost_rows = [row for row in self._rows.rows if row.cells[column] in lost_words]
        valued_rows = [*filter(self._has_value, lost_rows)]
        if not valued_rows:
            return True
        if not sure_words and (has_other or self._is_configuration(column)):
            self._note_unread(column, sorted(lost_words))
            return False
        if self._varies(column) and len(valued_rows) < len(lost_rows):
            return True
        self._refuse_unclear(
            column, valued_rows[0], f"{valued_rows[0].cells[column]!r} is said of a run that has a value"
        )

    def _has_value(self, row: FileRow) -> bool:
        number = parse_float(row.cells.get(self._value, "").strip(QUOTES))
        return number is not None and math.isfinite(number)

    def _varies(self, column: str) -> bool:
        """Whether runs of one method have different words."""
        first_words: dict[str, str] = {}
        rows = [(row.cells.get(self._method, ""), row.cells[column]) for row in self._rows.rows]
        return any(first_words.setdefault(method, word) != word for method, word in rows)

    def _is_configuration(self, column: str) -> bool:
        """Whether a column's words are a configuration's: the same of all runs of a method, each with a value."""
        return bool(self._method) and not self._varies(column) and all(map(self._has_value, self._rows.rows))

    def _is_setting(self, column: str, yes_words: Sequence[str]) -> bool:
        """Whether a flag is a configuration's (`skip_nan`), as several runs of every method that has it show."""
        rows = [row for row in self._rows.rows if row.cells[column] in yes_words]
        runs = {(row.cells.get(self._method, ""), row.cells.get(self._seed, row.line)) for row in rows}
        return self._is_configuration(column) and min(Counter(method for method, _ in runs).values()) > 1

    def _note_unread(self, column: str, words: Sequence[str]) -> None:
        rows = [row for row in self._rows.rows if row.cells[column] in words]
        self._notes[column] = self._write_unread(column, words, rows)

    @staticmethod
    def _write_unread(column: str, words: Iterable[str], rows: Iterable[FileRow]) -> str:
        lines = [row.line for row in rows]
        if not lines:
            return ""
        examples = join_with_and([quote(word[:60]) for word in dict.fromkeys(words)][:3])
        return (
            f"Column {quote(column)} is not read as statuses, although {examples} ({format_count(len(lines), 'row')}: "
            f"{name_lines(lines)}) could be one: {_write_flag('--status-column', column)} reads it."
        )

    def _refuse_unclear(self, column: str, row: FileRow, why: str) -> NoReturn:
        self._rows.fail(
            row,
            column,
            f"looks like statuses, but {why}; say whether it holds them: {_write_flag('--status-column', column)} "
            "reads it, the name of another column that one, and --status-column '' none",
        )

    def _refuse_unknown(self, row: FileRow, column: str, word: str) -> NoReturn:
        # "unfinished" is near to "finished", and says the contrary.
        hint = "" if re.match(r"(?:un|in|not?|non|dis)[\s_-]?[a-z]", word.lower()) else nearest(word.lower(), MEANING)
        self._rows.fail(
            row,
            column,
            f"{word!r} is no status that is known{hint}; say what it means with {write_mapping_flag(word, 'crashed')} "
            f"({_MEANINGS}), or name another column with --status-column ('' for none)",
        )


def write_mapping_flag(word: str, meaning: str) -> str:
    """Write the flag that maps a word, as a shell takes it: ``--status-map 'exit 0=crashed'``."""
    return _write_flag("--status-map", f"{word}={meaning}")


def _write_flag(flag: str, value: str) -> str:
    return f"{flag}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def _normalize(word: str) -> str:
    return re.sub(r"[\s_-]+", "_", word.strip().lower().rpartition(".")[2])


def _merge_finished(meaning: str) -> str:
    """What two columns must agree in: a run that was kept or discarded has finished."""
    return meaning if meaning in (CRASH, RUNNING) else FINISHED
