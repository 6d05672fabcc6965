"""Reads how far a run came that ended well, from what it printed: the step of its metric's last value, and signs after
that value that it did not go on to its end.

A run has such a sign where a line after the last value has a traceback, or a loss (or the metric) that is nan or inf.
None of these is one: a word that has these letters, a path, the start of a best value (`best loss: inf`), what Python
says when it could not tidy up ("Exception ignored in"), and the end of a reader (`| head`). A nan of any other name
(`grad_norm: nan`), or in a row of bare numbers, is a sign where the baseline's runs print none: some trainers print so
what they did not compute. An inf of another name is none, as mixed precision makes gradients infinite now and then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.own_trainer import metric
from plumbline.own_trainer.trainer_file import MetricPart

#: Seconds that the reading may take, lines before a value in which its step is looked for, and letters of a line that
#: are told.
SECONDS, LINES, LETTERS = 10.0, 200, 120
_VALUE = re.compile(r"(?<![\w./\\-])[-+]?(nan|inf(?:inity)?)(?![\w/\\]|[.-]\w)", re.IGNORECASE)
#: What stands in front of a value: up to three words, and what is between.
_NAME = re.compile(
    r"((?:[A-Za-z_][\w./@-]*\s+){0,2}[A-Za-z_][\w./@-]*)?[\"'`)\]]*\s*([:=|]*)\s*[\"'`(\[]*(?:tensor\()?$"
)
_LOSS = re.compile(r"loss(?![ _]?scal)|nll|ppl|perplexity|bpb|bpc|entropy", re.IGNORECASE)
_BEST = re.compile(
    r"(?<![a-z])(best|min|minimum|max|maximum|peak|record|lowest|highest|previous|initial)(?![a-z])", re.I
)
#: A sentence that says so: `loss became nan`, `NaN in the loss`; and one that says it is not so.
_SENTENCE = re.compile(r"\bnan\W+(?:[a-z]+\W+){0,3}\w*loss\b|\w*loss\W+(?:[a-z]+\W+){0,3}nan\b", re.IGNORECASE)
_DENIAL = re.compile(r"\b(no|not|never|without|if|0|zero|skip\w*|ignor\w*|check\w*)\b", re.IGNORECASE)
_NUMBERS = re.compile(r"[\s,;|]*(?:[-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|nan|inf)[\s,;|]+)+", re.IGNORECASE)
_TRACEBACK, _IGNORED = "Traceback (most recent call last)", "Exception ignored"
_PLACES = {
    "epoch": r"epochs?[\"']?\s*[:=#]?\s*[\"']?(\d+(?:\.\d+)?)",
    "step": r"_?(?:global[_ ]?)?(?:step|iter|iteration|update)s?[\"']?\s*[:=#]?\s*[\"']?(\d+(?:,\d{3})*)(?![.,]?\d)",
}
_PLACE = {name: re.compile(rf"(?<![\w/]){words}", re.IGNORECASE) for name, words in _PLACES.items()}


class LogEnd(Struct, frozen=True):
    """How far a run came.

    Attributes:
        sign: the sign that it did not go on to its end, in words; empty without one.
        diverged: whether that is a nan or an inf.
        other_nan: the line with a nan of another name; empty without one.
        place: of the last value: its `epoch` and `step`, or else how many values there are (`values`); empty where
            that is not known.
        unread: whether all of this is not known, as reading it took too long.
    """

    sign: str = ""
    diverged: bool = False
    other_nan: str = ""
    place: dict[str, float] = {}
    unread: bool = False


def read(part: MetricPart, log: Path, folder: Path, *, begin: int = 0) -> LogEnd:
    """Read the end of what a run printed to `log`, or wrote in `folder`, where its metric is in a file.

    `begin`: the byte of the log from which on all of it is there.
    """
    path = folder / (part.json.rpartition(":")[0] or part.file) if part.files else log
    if part.json and metric.whole(path):
        return LogEnd()
    lines = metric.backwards(path, begin=begin if path == log else 0)
    try:
        with metric.alarm(SECONDS):
            return _read(part, lines, whole=not begin)
    except PlumblineError:  # it took too long
        return LogEnd(unread=True)


def in_words(place: dict[str, float], called: str) -> str:
    """Say where a run's last value stands: ``step 500``; ``value 12 of val_loss``."""
    if "values" in place:
        return f"value {place['values']:g} of {called}"
    return ", ".join(f"{name} {number:.10g}" for name, number in place.items())


def _read(part: MetricPart, lines: Iterator[str], *, whole: bool) -> LogEnd:
    after: list[str] = []
    for line in lines:
        if metric.has_value(part, line):
            break
        after.append(line)
    else:
        if whole:
            return LogEnd()
        line = ""  # it is in the part that was left out
    sign, diverged, other = _signs(part, after[::-1])
    place, values = _place(line), int(whole)
    for earlier in islice(lines, LINES):
        if place:
            break
        place = _place(earlier)
        values += metric.has_value(part, earlier)
    if not place and whole:
        place = {"values": float(values + sum(metric.has_value(part, earlier) for earlier in lines))}
    return LogEnd(sign=sign, diverged=diverged, other_nan=other, place=place)


def _place(line: str) -> dict[str, float]:
    """The epoch and the step that a line names, the first of each."""
    every = {name: pattern.search(line) for name, pattern in _PLACE.items()}
    return {name: float(place[1].replace(",", "")) for name, place in every.items() if place}


def _signs(part: MetricPart, lines: list[str]) -> tuple[str, bool, str]:
    """The first sign in lines, whether it is a number, and the first line with a nan of another name."""
    other = ""
    for at, line in enumerate(lines):
        if _TRACEBACK in line:
            error = next((each.strip() for each in lines[at + 1 :] if each[:1].strip()), "")
            ignored = at > 0 and _IGNORED in lines[at - 1]
            if not ignored and not error.startswith("BrokenPipeError"):
                return f"a traceback ({error[:LETTERS]})", False, other
        elif _VALUE.search(line):
            if _is_loss(part, line):
                return repr(" ".join(line.split())[:LETTERS]), True, other
            if not other and _is_other_nan(line):
                other = " ".join(line.split())[:LETTERS]
    return "", False, other


def _is_loss(part: MetricPart, line: str) -> bool:
    if _SENTENCE.search(line) and not _DENIAL.search(line) and not _BEST.search(line):
        return True
    called = re.compile(rf"(?<![A-Za-z0-9]){re.escape(part.called)}$")
    for value in _VALUE.finditer(line):
        name = _NAME.search(line[: value.start()])
        words = (name and name[1]) or ""
        if (_LOSS.search(words) or called.search(words)) and not _BEST.search(words.replace("_", " ")):
            return True
    return False


def _is_other_nan(line: str) -> bool:
    for value in _VALUE.finditer(line):
        name = _NAME.search(line[: value.start()])
        if value[1].lower() == "nan" and name and name[2] and not _BEST.search((name[1] or "").replace("_", " ")):
            return True
    return "nan" in line.lower() and bool(_NUMBERS.fullmatch(f"{line} "))
