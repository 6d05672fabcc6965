"""Recognizes columns, beside those of statuses, that say how a run ended: flags, exit codes, and texts of errors.

Each is known by its name, and by what all its cells are; a name alone makes none.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from plumbline.verdict.evidence import CRASH, FINISHED
from plumbline.verdict.sources.column_names import (
    FLAGS,
    LOSS_METRICS,
    OF_A_RUN,
    UNSURE_EXIT_CODES,
    UNSURE_FLAGS,
    find_ending,
    has_word,
    split_name,
)
from plumbline.verdict.sources.row_files import parse_float

#: What a cell of a flag says, in lower case.
YES, _NO = frozenset(("true", "yes", "y", "t", "1", "1.0")), frozenset(("false", "no", "n", "f", "0", "0.0"))
#: A number, or number and signal as SLURM writes them, or the name of a signal, with the word for what it is.
_EXIT_CODE = re.compile(
    r"(?:(?:exit(?:ed)?|signal|code)[ :=]+)?(?:[-+]?\d+(?:\.0*)?|\d+:\d+|(?:\d+ )?\(?SIG[A-Z]+\d*\)?)", re.IGNORECASE
)
#: How programs write that there is no exit code, or a good one; and that there was no error.
_NO_CODE = frozenset(("none", "null", "na", "n/a", "nan", "-", "--", "ok", "success"))
NO_ERROR = _NO | _NO_CODE | {"[]", "{}"}
#: The largest exit code; what shells give where a signal ended a program lies between these two.
_LARGEST_CODE, _SIGNALS = 255, (129, 192)
#: A text that says of a run that it failed.
FAILURE = re.compile(
    r"\b(?:out of memory|oom|crash(?:ed|es)?|diverged?|killed|preempted|segfault|segmentation fault|traceback|"
    r"timed? ?out|aborted|interrupted|fail(?:ed|ure)|exception|nan|(?-i:[A-Z])\w*(?-i:Error|Exception))\b",
    re.IGNORECASE,
)


def find_flag(column: str, cells: Collection[str], *, is_named: bool = False) -> tuple[str, str] | None:
    """Return what yes and no of a column say of a run ("" where one leaves it open); None if it is no such column.

    A name that settings and metrics have too counts where both yes and no are there. `is_named`: it was said to hold
    statuses: yes of an unknown name is a run that was lost.
    """
    lower_words = {word.lower() for word in cells}
    if not lower_words or not lower_words <= YES | _NO:
        return None
    if ending := find_ending(column, FLAGS):
        return FLAGS[ending]
    is_both = bool(lower_words & YES and lower_words & _NO)
    return (CRASH, "") if is_named or (is_both and find_ending(column, UNSURE_FLAGS)) else None


def names_an_end_alone(column: str) -> bool:
    """Whether a name says of a run that it was lost, and nothing of what, as a setting's would (`skip_nan`)."""
    parts = {*split_name(column)}
    return bool(parts & UNSURE_FLAGS) and parts <= OF_A_RUN | LOSS_METRICS | UNSURE_FLAGS | {"had", "has", "is"}


def name_flag(column: str) -> str:
    """The words of a flag's name that say how a run ended."""
    return find_ending(column, FLAGS).replace("_", " ") or "".join(split_name(column)[-1:])


def counts_nans(column: str, cells: Collection[str], *, varies: bool) -> bool:
    """Whether a column counts NaNs of a run; a setting that skips them is 0 or 1, and one within a method."""
    limit = 0 if varies else 1
    return has_word(column, ("nan", "nans")) and any((parse_float(word) or 0) > limit for word in cells)


def may_hold_exit_codes(column: str, cells: Collection[str]) -> bool:
    """Whether a column may hold exit codes or signals, by a name that settings have too, and cells that are such."""
    if not find_ending(column, UNSURE_EXIT_CODES) or not are_exit_codes(cells):
        return False
    return all(int(number) <= _LARGEST_CODE for word in cells for number in re.findall(r"\d+", word.partition(".")[0]))


def names_signals(cells: Collection[str]) -> bool:
    """Whether some cells are names of signals, which no setting has."""
    return any(re.search(r"\bSIG(?!NAL)[A-Z]", word, re.IGNORECASE) for word in cells)


def are_killed(cells: Collection[str]) -> bool:
    """Whether all exit codes but 0 are those of programs that a signal ended, 137 for SIGKILL."""
    codes = {float(word) for word in cells if re.fullmatch(r"\d+(?:\.0*)?", word)} - {0.0}
    return bool(codes) and all(_SIGNALS[0] <= code <= _SIGNALS[1] for code in codes)


def translate_exit_code(word: str) -> str:
    """What an exit code says of a run: `0`, `0:0` and `none` are the end of one that finished."""
    if word.lower() in _NO_CODE:
        return FINISHED
    return CRASH if names_signals((word,)) or re.search("[1-9]", word) else FINISHED


def are_exit_codes(cells: Collection[str]) -> bool:
    """Whether cells are exit codes, all but those that say that there is none."""
    codes = [word for word in cells if word.lower() not in _NO_CODE]
    return bool(codes) and all(map(_EXIT_CODE.fullmatch, codes))
