"""Reads how far a run came that ended well, from what it printed and wrote: the largest step and epoch that is named,
and signs at its end that it did not go on to that.

Read is what stands after the last value of the metric, and the line of that. Where the metric is in a file, the end of
what was printed is read too: from the last line on that has a loss as a number. A nan or an inf of the metric, or of
the loss of training, says by itself that a run diverged. A traceback, a nan or an inf of another loss, and a nan of any
other name or in a row of bare numbers are signs where no run of the baseline has one of that kind: some trainers print
so what they did not compute, or go on after it. None of these is one: a word that has these letters, a path, the start
of a best value (`best loss: inf`), an inf of another name, as mixed precision makes gradients infinite now and then,
what Python says when it could not tidy up ("Exception ignored in"), and the end of a reader (`| head`). The end of a
thread, of an atexit's function or of the tracker of shared memory by an exception is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.own_trainer import metric
from plumbline.own_trainer.trainer_file import MetricPart

#: Seconds that the reading may take; lines before a value in which steps are looked for, and lines at the end of what
#: was printed in which signs are, where the metric is in a file; and letters of a line that are told.
SECONDS, LINES, LAST, LETTERS = 10.0, 20_000, 200, 120
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
_SENTENCE = re.compile(
    r"\bnan[^\w=:]+(?:[a-z]+\W+){0,3}(?:\w+[\s_])?loss\b|\b(?:\w+[\s_])?loss\W+(?:[a-z]+\W+){0,3}nan\b", re.IGNORECASE
)
#: What makes a loss in a sentence another than that of training.
_OTHER = re.compile(r"(?<![a-z])(?:aux\w*?|z|test|eval\w*?|val\w*?|router|balanc\w*?|kl)(?![a-z])[\s_/.-]*loss", re.I)
_DENIAL = re.compile(r"\b(no|not|never|without|if|0|zero|skip\w*|ignor\w*|check\w*)\b", re.IGNORECASE)
_NUMBERS = re.compile(r"[\s,;|]*(?:[-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|nan|inf)[\s,;|]+)+", re.IGNORECASE)
#: The names of the loss of training, whatever word stands before them; and a line that has one as a number.
_TRAINING = re.compile(
    r"(?:(?:step|iter|iteration|epoch|batch|info)\s+)*(?:train(?:ing)?[\s_/.-]*)?loss(?:/train)?", re.IGNORECASE
)
_HAS_LOSS = re.compile(r"(?<![A-Za-z])(?:loss|nll|ppl)[\"'`)\]]*\s*[:=|]*\s*[\"'`(\[]*[-+]?\.?\d", re.IGNORECASE)
_NULL = re.compile(r"\"([\w./@-]*)\": null\b")
_TRACEBACK, _IGNORED = "Traceback (most recent call last)", "Exception ignored"
#: What is said before, or in, a traceback of something beside the training.
_BESIDE = re.compile(r"Exception in thread|atexit\._run_exitfuncs|multiprocessing/resource_tracker\.py")
_UNIT = r"(?![.,]?\d)(?!\s*%|\s*(?:[mnuµ]?s|secs?|seconds?|mins?|minutes?|h|hours?|it/s|tok/s|[kMG]i?B)\b)"
_PLACES = {
    "epoch": rf"epoch[\"']?\s*[:=#]?\s*[\"']?(\d+(?:\.\d+)?){_UNIT}",
    "step": r"_?(?:global[_ ]?)?(?:step|iter|iteration|update)[\"']?\s*[:=#]?\s*[\"']?"
    rf"(\d+(?:,\d{{3}})*){_UNIT}",
}
_PLACE = {name: re.compile(rf"(?<![\w/]){words}", re.IGNORECASE) for name, words in _PLACES.items()}
_NAMES_PLACE = re.compile(r"epoch|step|iter|update", re.IGNORECASE)
#: What makes a number behind `step` none of a place: a time per step, and where a best value was.
_NO_PLACE = re.compile(
    r"(?<![a-z])(?:best|lowest|highest|minimum|maximum|peak)(?![a-z])|\b(?:per|each)[\s-]+(?:\w+\s+)?$", re.I
)


class LogEnd(Struct, frozen=True):
    """How far a run came.

    Attributes:
        diverged: the line with a nan or an inf of the metric or of the loss of training; empty without one.
        signs: what else says that it did not go on to its end, where the baseline's runs have none of the kind: each
            as it was printed, by its kind.
        beside: what is told and counts for nothing.
        place: the largest `epoch` and `step` that are named, or else how many values there are (`values`); empty where
            that is not known.
        unread: whether all of this is not known, as reading it took too long.
    """

    diverged: str = ""
    signs: dict[str, str] = {}
    beside: list[str] = []
    place: dict[str, float] = {}
    unread: bool = False


def read(part: MetricPart, log: Path, folder: Path, *, begin: int = 0, end: int | None = None) -> LogEnd:
    """Read the end of what a run printed to `log`, and wrote in `folder`, where its metric is in a file.

    `begin`: the byte of the log from which on all of it is there; `end`: the one behind what was printed.
    """
    printed = metric.backwards(log, begin=begin, end=end)
    try:
        with metric.alarm(SECONDS):
            if not part.files:
                return _read(part, printed, whole=not begin)
            path = folder / (part.json.rpartition(":")[0] or part.file)
            rows = [json.dumps(row) for row in metric.whole(path)] if part.json else []
            return _joined(_read(part, iter(rows) if rows else metric.backwards(path), whole=True), printed)
    except PlumblineError:  # it took too long
        return LogEnd(unread=True)


def in_words(place: dict[str, float], called: str) -> str:
    """Say where a run's last value stands: ``step 500``; ``value 12 of val_loss``."""
    if "values" in place:
        return f"value {place['values']:g} of {called}"
    return ", ".join(f"{name} {number:.10g}" for name, number in sorted(place.items()))


def _read(part: MetricPart, lines: Iterator[str], *, whole: bool) -> LogEnd:
    """Read the lines that have the metric's values, the last first."""
    after: list[str] = []
    without_value = None
    for line in lines:
        after.append(line)
        if metric.has_value(part, line):
            without_value = metric.without_value(part, line)
            break
    else:
        if whole:
            return LogEnd()
    place: dict[str, float] = {}
    for line in after:
        _widen(place, line)
    values, nulls = int(whole), set[str]()
    for earlier in islice(lines, LINES):
        _widen(place, earlier)
        values += not place and metric.has_value(part, earlier)
        nulls.update(_NULL.findall(earlier) if part.json else ())
    if not place and whole:
        place = {"values": float(values + sum(metric.has_value(part, earlier) for earlier in lines))}
    end = _signs(part.called, after[::-1], without_value)
    if part.json:  # a number that was nan, as many programs write it
        for line in after[:-1]:
            for name in _NULL.findall(line):
                if name not in nulls and _is_loss(name, part.called):
                    end.signs.setdefault(f"null {name}", _short(line))
    return msgspec.structs.replace(end, place=place)


def _joined(end: LogEnd, printed: Iterator[str]) -> LogEnd:
    """Add what was printed to what the metric's file says."""
    after: list[str] = []
    for line in islice(printed, LAST):
        after.append(line)
        if _HAS_LOSS.search(line):
            break
    said = _signs("", after[::-1])
    place = {} if "values" in end.place else dict(end.place)
    for line in (*after, *islice(printed, LINES)):
        _widen(place, line)
    return LogEnd(
        diverged=end.diverged or said.diverged,
        signs=said.signs | end.signs,
        beside=[*end.beside, *said.beside],
        place=place or end.place,
    )


def _widen(place: dict[str, float], line: str) -> None:
    """Add the epochs and steps that a line names."""
    if not _NAMES_PLACE.search(line):
        return
    for name, pattern in _PLACE.items():
        for match in pattern.finditer(line):
            if not _NO_PLACE.search(line[: match.start()]):
                place[name] = max(place.get(name, 0.0), float(match[1].replace(",", "")))


def _signs(called: str, lines: list[str], first: str | None = None) -> LogEnd:
    """What lines say of a run's end, but for its place; `first`: what is read of the first of them."""
    end = LogEnd()
    for at, line in enumerate(lines):
        if _TRACEBACK in line:
            below = next((place for place in range(at + 1, len(lines)) if lines[place][:1].strip()), len(lines))
            error = lines[below].strip() if below < len(lines) else ""
            around = "\n".join(lines[max(0, at - 1) : below])
            words = f"a traceback ({error[:LETTERS]})"
            if _BESIDE.search(around):
                end.beside.append(words)
            elif _IGNORED not in lines[max(0, at - 1)] and not error.startswith("BrokenPipeError"):
                end.signs.setdefault(f"traceback {error.partition(':')[0]}", words)
        elif _VALUE.search(line):
            kinds = _kinds(called, line if at or first is None else first)
            if "" in kinds:
                return msgspec.structs.replace(end, diverged=_short(line))
            for kind in kinds:
                end.signs.setdefault(kind, _short(line))
    return end


def _kinds(called: str, line: str) -> list[str]:
    """The kinds of nan and inf in a line: "" is that of the metric or of the loss of training."""
    kinds = []
    for value in _VALUE.finditer(line):
        name = _NAME.search(line[: value.start()])
        words = ((name and name[1]) or "").strip()
        if _BEST.search(words.replace("_", " ")):
            continue
        if _TRAINING.fullmatch(words) or (called and re.search(rf"(?<![\w./@-]){re.escape(called)}$", words)):
            kinds.append("")
        elif _LOSS.search(words):
            kinds.append(f"nan {next(word for word in words.split() if _LOSS.search(word))}")
        elif value[1].lower() == "nan" and name and name[2]:
            kinds.append("nan")
    sentence = _SENTENCE.search(line)
    if sentence and not _DENIAL.search(line) and not _BEST.search(line):
        other = _OTHER.search(sentence[0])
        if other is None or _plain(other[0]) == _plain(called):
            kinds.append("")
        elif not kinds:
            kinds.append("nan loss")
    if not kinds and "nan" in line.lower() and _NUMBERS.fullmatch(f"{line} "):
        kinds.append("nan")
    return kinds


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).lower()


def _is_loss(name: str, called: str) -> bool:
    return bool(_LOSS.search(name)) or name == called or called.endswith(f".{name}")


def _short(line: str) -> str:
    return repr(" ".join(line.split())[:LETTERS])
