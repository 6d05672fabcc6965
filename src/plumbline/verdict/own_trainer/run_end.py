"""Reads how far a run came that ended well, and what says at its end that it did not go on to that; and compares that
with how the baseline's runs ended, as what those do as well is no failure of this one.

Read is what stands after the last value of the metric, and the line of that. Where the metric is in a file, the end of
what was printed is read too. Only a nan or an inf of the metric, or of the loss of training, says by itself that a run
diverged (`loss: nan`). All else is a sign, and means something only where neither a run of the baseline nor the run
itself before that value, after which it went on, has one of its kind: a traceback by its exception, a nan with a name
by that, any other nan by its line without the numbers. An inf counts for losses alone, as mixed precision makes
gradients infinite now and then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path

import msgspec
from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer import metric, process_ends
from plumbline.verdict.own_trainer.requests import LastValue, Result
from plumbline.verdict.own_trainer.run_places import (
    BEFORE,
    BEST,
    NUMBER,
    Places,
    describe_early_end,
    describe_early_value,
    describe_other_row,
    remove_numbers,
)
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: Seconds that the reading may take; lines before a value in which steps are looked for, and lines at the end of what
#: was printed in which signs are, where the metric is in a file; and letters of a line that are reported.
SECONDS, LINES, LAST, LETTERS = 10.0, 20_000, 200, 120
_VALUE = r"(?<![\w./\\-])[-+]?(nans?(?:/infs?)?|inf(?:inity|/nan)?)(?![\w/\\]|[.-]\w)"
_BARE = re.compile(_VALUE, re.IGNORECASE)
#: Up to three words, and a value behind them: with a sign between, or after a loss.
_WORD = r"(?!(?:nan|inf)\b)[a-z_][\w./@-]*"
_WORDS = rf"(?<![\w./@-])((?:{_WORD} ){{0,2}}{_WORD})[\"'`)\]]{{0,3}} ?"
_OPENED = rf"[\"'`(\[]{{0,3}}(?:tensor\([\[(]{{0,3}})?{_VALUE}"
_NAMED = re.compile(rf"{_WORDS}[:=|]{{1,3}} ?{_OPENED}", re.IGNORECASE)
_AFTER_WORDS = re.compile(rf"{_WORDS}{_OPENED}(?! ?[?:=]| count)", re.IGNORECASE)
_LOSS = re.compile(r"(?:loss(?![ _]?scal)|nll|ppl|perplexity|bpb|bpc|entropy)[^ ]*(?: is)?$", re.IGNORECASE)
#: The names of the loss of training, and words of a log that may stand before a name.
_TRAINING = re.compile(r"(?:train(?:ing)?[ _/.-]*)?loss(?:/train)?", re.IGNORECASE)
_LEVEL = re.compile(r"^(?:(?:info|step|iter|iteration|epoch|batch) )+", re.IGNORECASE)
#: What says that there was none, or how many there were (a count behind a nan that is no value of a name itself), that
#: there was one, in a name, and a sentence of the scale that mixed precision adapts.
_DENIAL = re.compile(
    r"\b(?:no|not|never|without|zero) (?:an? |any )?nans?\b|\b(?:0|none) of (?:\S+ ){1,3}(?:was|were) nans?\b"
    r"|(?<!rank )(?<!gpu )(?<!cuda )(?<!device )(?<!worker )\b0 nan(?:s\b|$| (?!loss\b)\w+s\b)"
    r"|\bnans? (?:\w+ )?(?:filtered|excluded|ignored|skipped|encountered 0 times)\b"
    r"|\bnans? (?:(?:-> |\| )?(?:false|no|none|free|never)|checks?:? (?:passed|ok)|guard:? (?:on|off))\b",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\bnans?\b(?:(?!\b(?:at|step|iter\w*|epoch|rank|gpu|cuda|device|worker|batch|layer|param\w*|code)\b)[^:=?,;(]){0,40}"
    r"[:=?]+ ?[\"']?(?:false|none|no|0+)\b(?!\.)|\bnan (?:count|losses) 0+\b",
    re.IGNORECASE,
)
_IS_NAN = re.compile(r"(?:is|has|loss)_?nan[\"']?\s?[:=]\s?[\"']?(?:true|yes)\b", re.IGNORECASE)
_ANY = re.compile(rf"{_VALUE}|{_IS_NAN.pattern}", re.IGNORECASE)
_SCALE = re.compile(r"\bloss[ _-]?scal|\bgrad(?:ient)?s?[ _-]?scal|\bscaler\b", re.IGNORECASE)
_LIST = re.compile(r"\[([^\[\]]*)\]")
_NULL = re.compile(r"\"([\w./@-]*)\": null\b")
#: A line that has a loss as a number.
_HAS_LOSS = re.compile(r"(?<![A-Za-z])(?:loss|nll|ppl)[\"'`)\]]*\s*[:=|]*\s*[\"'`(\[]*[-+]?\.?\d", re.IGNORECASE)
_TRACEBACK, _IGNORED = "Traceback (most recent call last)", "Exception ignored"
#: What is said before, or in, a traceback of something beside the training.
_BESIDE = re.compile(r"Exception in thread|atexit\._run_exitfuncs|multiprocessing/resource_tracker\.py")
#: What is stated where there is nothing to compare a run's processes with.
_UNKNOWN = (
    "whether the baseline's runs have that is not known, as an older Plumbline made them: plumbline setup-trainer "
    "--again makes others"
)


class LogEnd(Struct, frozen=True):
    """How far a run came.

    Attributes:
        diverged: the line with a nan or an inf of the metric or of the loss of training; empty without one.
        signs: what else may show that it did not go on to its end: each as it was printed, by its kind.
        beside: what is reported and counts for nothing.
        place: the largest `epoch` and `step` that it reached, or else how many `values` there are, as far as is known.
        interval: by how much each of them grows from a line to the next, at most.
        last: where its last value stands; last_held_out: that of the held-out metric.
        unread: whether all of this is not known, as reading it took too long.
    """

    diverged: str = ""
    signs: dict[str, str] = {}
    beside: list[str] = []
    place: dict[str, float] = {}
    interval: dict[str, float] = {}
    last: LastValue = LastValue()
    last_held_out: LastValue = LastValue()
    unread: bool = False


def read(part: MetricPart, log: Path, folder: Path, *, begin: int = 0, end: int | None = None) -> LogEnd:
    """Read the end of what a run printed to `log`, and wrote in `folder`, where its metric is in a file.

    `begin`: the byte of the log from which on all of it is there; `end`: the one behind what was printed.
    """
    whole_end = _read_log(part, log, folder, begin, end)
    held_out = _read_log(part.of_held_out, log, folder, begin, end).last if part.held_out else LastValue()
    return msgspec.structs.replace(whole_end, last_held_out=held_out)


def _read_log(part: MetricPart, log: Path, folder: Path, begin: int, end: int | None) -> LogEnd:
    printed = metric.backwards(log, begin=begin, end=end)
    try:
        with metric.alarm(SECONDS):
            places = Places()
            if not part.files:
                signs = _read(part, printed, places, is_whole=not begin)
            else:
                path = folder / (part.json.rpartition(":")[0] or part.file)
                rows = [json.dumps(row) for row in metric.read_whole_file(path)] if part.json else []
                lines = filter(str.strip, rows or metric.backwards(path))
                first_two = list(islice(lines, 2))
                signs = _read(part, chain(first_two, lines), places, is_whole=True)
                signs = _join_end(signs, printed, places)
                if len(first_two) == 1:  # a result, as of the best checkpoint, and no row among others
                    is_late = signs.last.is_late or places.locate_value().is_late
                    signs = msgspec.structs.replace(signs, last=msgspec.structs.replace(signs.last, is_late=is_late))
            reached = places.choose_reached()
            place = {name: counter.largest for name, counter in reached.items()} or places.count_values()
            interval = {name: counter.interval for name, counter in reached.items()}
            return msgspec.structs.replace(signs, place=place, interval=interval)
    except PlumblineError:  # it took too long
        return LogEnd(unread=True)


def _read(part: MetricPart, lines: Iterator[str], places: Places, *, is_whole: bool) -> LogEnd:
    """Read the lines that have the metric's values, the last first."""
    tail: list[str] = []
    parts = None
    for line in lines:
        tail.append(line)
        if parts := metric.split_at_value(part, line):
            break
    else:
        if is_whole:
            return LogEnd()
    end = _read_end(part.called, tail[::-1], f"{parts[0]}0{parts[2]}" if parts and not part.json else None)
    for at, line in enumerate(tail, start=1):
        places.add(line, parts if at == len(tail) else None)
    nulls = set[str]()
    for line in islice(lines, LINES):
        places.add(line, metric.split_at_value(part, line))
        nulls.update(_NULL.findall(line) if part.json else ())
        for kind in _find_kinds(part.called, line) if end.signs and _ANY.search(line) else ():
            if kind in end.signs:
                end.beside.append(f"{end.signs.pop(kind)}, as it did before its last {part.called}")
    if not is_whole:
        places.values = 0  # not all of them are there
    elif not places.locate_value().place.keys() - {"values"}:
        places.values += sum(metric.split_at_value(part, line) is not None for line in lines)
    if part.json:  # a number that was nan, as many programs write it
        for line in tail[:-1]:
            for name in _NULL.findall(line):
                is_loss = _LOSS.search(name) or name == part.called or part.called.endswith(f".{name}")
                if name not in nulls and is_loss:
                    end.signs.setdefault(f"null {name}", _shorten(line))
    return msgspec.structs.replace(end, last=places.locate_value())


def _join_end(end: LogEnd, printed: Iterator[str], places: Places) -> LogEnd:
    """Add what was printed to what the metric's file says: from the last number of a loss on, or else the last line."""
    last_lines = list(islice(printed, LAST))
    for line in chain(last_lines, islice(printed, LINES)):
        places.add(line)
    loss = next((at for at, line in enumerate(last_lines) if _HAS_LOSS.search(line)), None)
    printed_end = _read_end("", _find_last(last_lines[::-1]) if loss is None else last_lines[loss::-1])
    return msgspec.structs.replace(
        end,
        diverged=end.diverged or printed_end.diverged,
        signs=printed_end.signs | end.signs,
        beside=[*end.beside, *printed_end.beside],
    )


def _find_last(lines: list[str]) -> list[str]:
    """The last line that is not empty, with the traceback that it ends."""
    lines = [line for line in lines if line.strip()]
    at = next((at for at in reversed(range(len(lines))) if _TRACEBACK in lines[at]), None)
    ends = at is not None and not any(line[0].strip() for line in lines[at + 1 : -1])
    return lines[max(0, at - 1) :] if at is not None and ends else lines[-1:]


def _read_end(called: str, lines: list[str], first: str | None = None) -> LogEnd:
    """What lines show of a run's end, except for its place; `first`: what is read of the first of them."""
    end = LogEnd()
    for at, line in enumerate(lines):
        if _TRACEBACK in line:
            places = range(at + 1, min(at + LAST, len(lines)))
            error_at = next((place for place in places if lines[place][:1].strip()), places.stop)
            error = lines[error_at].strip() if error_at < len(lines) else ""
            around = "\n".join(lines[max(0, at - 1) : error_at])
            sign = f"a traceback ({error[:LETTERS]})"
            if _BESIDE.search(around):
                end.beside.append(sign)
            elif _IGNORED not in lines[max(0, at - 1)] and not error.startswith("BrokenPipeError"):
                end.signs.setdefault(f"traceback {error.partition(':')[0]}", sign)
        elif _ANY.search(line):
            kinds = _find_kinds(called, line if at or first is None else first)
            if "" in kinds:
                return msgspec.structs.replace(end, diverged=_shorten(line))
            for kind in kinds:
                end.signs.setdefault(kind, _shorten(line))
    return end


def _find_kinds(called: str, line: str) -> list[str]:
    """The kinds of nan and inf in a line: "" is that of the metric or of the loss of training."""
    kinds = []

    def name(value: re.Match[str]) -> str:
        """Note a value that has a name, and take it out; leave one that has none."""
        label = _LEVEL.sub("", value[1][-LETTERS:])
        is_loss, is_nan = bool(_LOSS.search(label)), value[2][:3].lower() == "nan"
        if value.re is _AFTER_WORDS and not is_loss:
            return value[0]
        is_best = bool(BEST.search(re.split(r"\d", line[max(0, value.start() - BEFORE) : value.end(1)])[-1]))
        is_metric = bool(called) and _normalize_name(label) == _normalize_name(called)
        if (is_metric or _TRAINING.fullmatch(label)) and not is_best:
            kinds.append("")
        elif is_nan or (is_loss and not is_best):
            kinds.append(f"nan {remove_numbers(label)}")
        return " "

    line = _DENIAL.sub(" ", _LIST.sub(_join_values, " ".join(line.split())))
    line = _COUNT.sub(" ", _AFTER_WORDS.sub(name, _NAMED.sub(name, line)))
    has_nan = _IS_NAN.search(line) or any(value[1][:3].lower() == "nan" for value in _BARE.finditer(line))
    if has_nan and not _SCALE.search(line):
        kinds.append(f"nan: {remove_numbers(line)[:LETTERS]}")
    return kinds


def _join_values(numbers: re.Match[str]) -> str:
    """A list of numbers as one: which of them is a nan differs from run to run."""
    text = NUMBER.sub("", _BARE.sub("", numbers[1]))
    return "[nan]" if "nan" in numbers[1].lower() and not any(map(str.isalpha, text)) else numbers[0]


def _normalize_name(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).lower()


def _shorten(line: str) -> str:
    return repr(" ".join(line.split())[:LETTERS])


class ComparedEnd(Struct, frozen=True):
    """What a comparison shows of a run: `why` it counts as crashed, empty if it does not, and `remarks` on its end."""

    why: str = ""
    remarks: list[str] = []


def compare(
    result: Result, base_runs: Collection[Result], called: str, *, may_be_shorter: bool = False, held_out: bool = False
) -> ComparedEnd:
    """Compare a finished run with finished runs of the baseline (`base_runs`, without itself); `called` is the metric.

    `may_be_shorter`: an end at an earlier step is reported and is not a failure; `held_out`: the metric is that.
    """
    if held_out:
        result, *base_runs = (msgspec.structs.replace(run, last=run.last_held_out) for run in (result, *base_runs))
    remarks, whys = list(result.remarks), []
    remarks += process_ends.describe_new_exits(result.ended_at_once, [run.ended_at_once for run in base_runs])
    complete = [run for run in base_runs if run.failed is not None]
    note = "no run of the baseline has that" if complete or not base_runs else _UNKNOWN
    theirs = {process_ends.kind(end) for run in complete for end in (*(run.failed or ()), *run.failed_beside)}
    shared_ends = [end for end in result.failed or () if process_ends.kind(end) in theirs]
    if shared_ends:
        remarks.append(f"{process_ends.describe_failed_processes(shared_ends)}, as runs of the baseline have it")
    if unmatched := [end for end in result.failed or () if end not in shared_ends]:
        whys.append(f"{process_ends.describe_failed_processes(unmatched)}, and {note}")
    for kind, sign in result.signs.items():
        text = f"at its end it printed {sign}"
        if any(kind in run.signs for run in base_runs):
            remarks.append(f"{text}, as runs of the baseline do")
        else:
            whys.append(f"{text}, and {note}")
    for describe in (describe_early_end, describe_early_value):
        if early := describe(result, base_runs, called):
            text, of_all = early
            (whys if of_all and not may_be_shorter else remarks).append(text)
    if other_row := describe_other_row(result, base_runs, called):
        text, is_sure = other_row
        (whys if is_sure else remarks).append(text)
    return ComparedEnd(why="; ".join(dict.fromkeys(whys)), remarks=list(dict.fromkeys(remarks)))


def tell_of_baseline(result: Result) -> ComparedEnd:
    """List the remarks on the end of a run of the baseline, which is compared with none."""
    failed = [process_ends.describe_failed_processes(result.failed)] if result.failed else []
    signs = [f"at its end it printed {sign}" for sign in result.signs.values()]
    return ComparedEnd(remarks=[*result.remarks, *failed, *signs])
