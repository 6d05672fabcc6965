"""Recognizes columns, beside those of statuses, that say how a run ended: flags, exit codes, and texts of errors.

Each is known by its name, and by what all its cells are; a name alone makes none.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from plumbline.verdict.evidence import CRASH, FINISHED, RUNNING

#: The last word of the name of a column of yes and no -> what yes and no say of a run; "" where that leaves it open.
_LOSSES = "aborted crashed diverged errored failed interrupted killed oom preempted"
_FLAGS = dict.fromkeys(_LOSSES.split(), (CRASH, ""))
_FLAGS |= dict.fromkeys(("completed", "done", "finished"), (FINISHED, RUNNING))
_FLAGS |= dict.fromkeys(("succeeded", "success", "successful", "ok"), (FINISHED, CRASH))
#: As above, of names that settings and metrics have too: where both yes and no are there.
_FLAGS_OF_BOTH = dict.fromkeys(("crash", "error", "failure", "nan", "timeout"), (CRASH, ""))
#: The last words of names with two of them.
_FLAGS_OF_TWO: dict[tuple[str, ...], tuple[str, str]] = {("timed", "out"): (CRASH, ""), ("out", "memory"): (CRASH, "")}
_YES, _NO = frozenset(("true", "yes", "y", "t", "1", "1.0")), frozenset(("false", "no", "n", "f", "0", "0.0"))
#: The last words of the name of a column of exit codes: a run that ended with another than 0 is lost.
_EXIT_CODES = (
    "exit code|exitcode|return code|returncode|retcode|rc|exit status|exitstatus|exit value|exitvalue|exit val|exitval|"
    "exit signal|exitsignal|exit sig|term signal|termsignal|termsig|kill signal|killed by signal|killed by"
)
#: As above, of names that settings and measures have too: where runs of one method differ, or signals are named.
_EXIT_CODES_OF_BOTH = "exit|signal|signum|signo"
#: A number, or number and signal as SLURM writes them, or the name of a signal, with the word for what it is.
_EXIT_CODE = re.compile(
    r"(?:(?:exit(?:ed)?|signal|code)[ :=]+)?(?:[-+]?\d+(?:\.0*)?|\d+:\d+|(?:\d+ )?\(?SIG[A-Z]+\d*\)?)", re.IGNORECASE
)
#: How programs write that there is none, or that it is a good one.
_NO_CODE = frozenset(("none", "null", "na", "n/a", "nan", "-", "--", "ok", "success"))
#: The largest exit code; what shells give where a signal ended a program lies between these two.
_LARGEST_CODE, _SIGNALS = 255, (129, 192)
#: Words of names of what is a number of every run that went well.
_MEASURED = frozenset(("loss", "losses", "nll", "ppl", "perplexity", "bpb", "bpc", "norm"))
#: The last words of the name of a column that holds what a run failed with.
_ERRORS = "error|err|exception|traceback|error message|error msg|errormessage|error type|failure reason|failure"
#: How programs write that there was none.
_NOTHING = _NO | {"none", "null", "nan", "na", "n/a", "-", "--", "ok", "[]", "{}", "success"}
#: A text that says of a run that it failed.
_FAILURE = re.compile(
    r"\b(?:out of memory|oom|crash(?:ed|es)?|diverged?|killed|preempted|segfault|segmentation fault|traceback|"
    r"timed? ?out|aborted|interrupted|fail(?:ed|ure)|exception|nan|(?-i:[A-Z])\w*(?-i:Error|Exception))\b",
    re.IGNORECASE,
)


def split_name(column: str) -> list[str]:
    """The words of a column's name, in lower case; a number at its end is of a column that was there twice."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column)
    parts = [part.lower() for part in re.split(r"[^A-Za-z0-9]+", spaced) if part]
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    return parts


def find_flag(column: str, cells: Collection[str], *, is_named: bool = False) -> tuple[str, str] | None:
    """Return what yes and no of a column say of a run ("" where one leaves it open); None if it is no such column.

    `is_named`: it was said to hold statuses: yes of an unknown name is a run that was lost.
    """
    parts, lower = split_name(column) or [""], {word.lower() for word in cells}
    if not lower or not lower <= _YES | _NO:
        return None
    both = {word in _YES for word in lower} == {True, False}
    flag = (
        _FLAGS.get(parts[-1])
        or _FLAGS_OF_TWO.get(tuple(parts[-2:]))
        or (_FLAGS_OF_BOTH.get(parts[-1]) if both else None)
    )
    return flag or ((CRASH, "") if is_named else None)


def name_flag(column: str) -> str:
    """The words of a flag's name that say how a run ended."""
    parts = split_name(column)
    return " ".join(parts[-2:] if tuple(parts[-2:]) in _FLAGS_OF_TWO else parts[-1:])


def is_yes(word: str) -> bool:
    """Whether a cell of a flag says yes."""
    return word.lower() in _YES


def names_an_end(column: str) -> bool:
    """Whether a name speaks of how a run ended, whatever its cells are: also `diverged_at`, `n_failed_steps`."""
    parts = split_name(column) or [""]
    is_at_end = parts[-1] in {*_FLAGS, "converged"} or tuple(parts[-2:]) in _FLAGS_OF_TWO
    return is_at_end or not {*parts}.isdisjoint(_LOSSES.split()) or _ends_in(column, _EXIT_CODES)


def counts_nans(column: str, cells: Collection[str], *, varies: bool) -> bool:
    """Whether a column counts NaNs of a run; a setting that skips them is 0 or 1, and one within a method."""
    if {"nan", "nans"}.isdisjoint(split_name(column)):
        return False
    try:
        return any(float(word) > (0 if varies else 1) for word in cells)
    except ValueError:
        return False


def names_loss(column: str) -> bool:
    """Whether a name is of a loss, or of a norm, which is a number of every run that goes well."""
    return not _MEASURED.isdisjoint(split_name(column))


def may_hold_exit_codes(column: str, cells: Collection[str]) -> bool:
    """Whether a column may hold exit codes or signals, by a name that settings have too, and cells that are such."""
    if not _ends_in(column, _EXIT_CODES_OF_BOTH) or not _are_exit_codes(cells):
        return False
    return all(int(number) <= _LARGEST_CODE for word in cells for number in re.findall(r"\d+", word.partition(".")[0]))


def names_signals(cells: Collection[str]) -> bool:
    """Whether some cells are names of signals, which no setting has."""
    return any(re.search(r"\bSIG(?!NAL)[A-Z]", word, re.IGNORECASE) for word in cells)


def are_killed(cells: Collection[str]) -> bool:
    """Whether all exit codes but 0 are those of programs that a signal ended, 137 for SIGKILL."""
    codes = {float(word) for word in cells if re.fullmatch(r"\d+(?:\.0*)?", word)} - {0.0}
    return bool(codes) and all(_SIGNALS[0] <= code <= _SIGNALS[1] for code in codes)


def holds_exit_codes(column: str, cells: Collection[str]) -> bool:
    """Whether a column holds exit codes: all its cells are such, under such a name."""
    return _ends_in(column, _EXIT_CODES) and _are_exit_codes(cells)


def translate_exit_code(word: str) -> str:
    """What an exit code says of a run: `0`, `0:0` and `none` are the end of one that finished."""
    if word.lower() in _NO_CODE:
        return FINISHED
    return CRASH if names_signals((word,)) or re.search("[1-9]", word) else FINISHED


def names_errors(column: str) -> bool:
    """Whether a column is one of errors by its name."""
    return _ends_in(column, _ERRORS)


def states_nothing(word: str) -> bool:
    """Whether a cell is how a program writes that there was no error."""
    return word.strip().lower() in _NOTHING


def states_failure(text: str) -> bool:
    """Whether a text says of a run that it failed."""
    return bool(_FAILURE.search(text))


def _are_exit_codes(cells: Collection[str]) -> bool:
    codes = [word for word in cells if word.lower() not in _NO_CODE]
    return bool(codes) and all(map(_EXIT_CODE.fullmatch, codes))


def _ends_in(column: str, names: str) -> bool:
    parts = split_name(column)
    return any(parts[-len(ending) :] == ending for ending in map(str.split, names.split("|")))
