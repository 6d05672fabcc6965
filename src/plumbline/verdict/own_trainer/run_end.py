"""Reads how far a run came that ended well, and what says at its end that it did not go on to that; and compares that
with how the baseline's runs ended, as what those do as well is no failure of this one.

Read is what stands after the last value of the metric, and the line of that. Where the metric is in a file, the end of
what was printed is read too. Only a nan or an inf of the metric, or of the loss of training, says by itself that a run
diverged (`loss: nan`). All else is a sign, and means something only where neither a run of the baseline nor the run
itself before that value, after which it went on, has one of its kind: a traceback by its exception, a nan with a name
by that, any other nan by its line without the numbers. An inf counts for losses alone, as mixed precision makes
gradients infinite now and then.

The step or epoch reached is a number behind that name that grows over lines of one shape, or that stands in the only
line with the metric: what is printed once in addition is a setting.
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
from plumbline.verdict.own_trainer.requests import Result
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: Seconds that the reading may take; lines before a value in which steps are looked for, and lines at the end of what
#: was printed in which signs are, where the metric is in a file; and letters of a line that are reported.
SECONDS, LINES, LAST, LETTERS = 10.0, 20_000, 200, 120
#: Letters before a number that make its shape, and numbers of a line that are read.
_BEFORE, _MOST = 60, 100
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
#: What makes a value the start of a search for the best, or the best itself.
_BEST = re.compile(r"(?<![a-z])(?:best|min|max|peak|record|lowest|highest|prev|init)", re.IGNORECASE)
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
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?", re.IGNORECASE)
_NULL = re.compile(r"\"([\w./@-]*)\": null\b")
#: A line that has a loss as a number.
_HAS_LOSS = re.compile(r"(?<![A-Za-z])(?:loss|nll|ppl)[\"'`)\]]*\s*[:=|]*\s*[\"'`(\[]*[-+]?\.?\d", re.IGNORECASE)
_TRACEBACK, _IGNORED = "Traceback (most recent call last)", "Exception ignored"
#: What is said before, or in, a traceback of something beside the training.
_BESIDE = re.compile(r"Exception in thread|atexit\._run_exitfuncs|multiprocessing/resource_tracker\.py")
_UNIT = r"(?![.,]?\d)(?!\s*%|\s*(?:[mnuµ]?s|secs?|seconds?|mins?|minutes?|h|hours?|it/s|tok/s|[kMG]i?B)\b)"
_IS = r"[\"']?\s?[:=#]?\s{0,20}[\"'\[(]?"
_PLACE = {
    name: re.compile(rf"(?<![\w/])(?<!/ )(?<!per )(?<!each ){form}{_UNIT}", re.IGNORECASE)
    for name, form in {
        "epoch": rf"epoch{_IS}(\d{{1,15}}(?:\.\d{{1,15}})?)",
        "step": rf"_?(?:global[_ ]?)?(?:step|iter|iteration|update){_IS}(\d{{1,15}}(?:,\d{{3}}){{0,4}})",
    }.items()
}
_NAMES_PLACE = re.compile(r"epoch|step|iter|update", re.IGNORECASE)
#: Runs of the baseline that must end at one place before an earlier end is a failure: one alone proves nothing.
LEAST = 2
#: Runs that take as long as the baseline's, up to this part of that, have a budget of time: of runs of fewer seconds
#: than that the start is too large a part to say so.
_AS_LONG, _LONG_SECONDS = 0.03, 10.0
#: The part of the way, at most, of which one line may be missing at the end, as where steps are counted from 0 or time
#: is up; and the part of an epoch, as of 3 epochs of which the last batches are left out (2.98).
_PART_OF_WAY, _PART_OF_EPOCH = 0.25, 0.5
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
        unread: whether all of this is not known, as reading it took too long.
    """

    diverged: str = ""
    signs: dict[str, str] = {}
    beside: list[str] = []
    place: dict[str, float] = {}
    interval: dict[str, float] = {}
    unread: bool = False


def read(part: MetricPart, log: Path, folder: Path, *, begin: int = 0, end: int | None = None) -> LogEnd:
    """Read the end of what a run printed to `log`, and wrote in `folder`, where its metric is in a file.

    `begin`: the byte of the log from which on all of it is there; `end`: the one behind what was printed.
    """
    printed = metric.backwards(log, begin=begin, end=end)
    try:
        with metric.alarm(SECONDS):
            places = _Places()
            if not part.files:
                signs = _read(part, printed, places, whole=not begin)
            else:
                path = folder / (part.json.rpartition(":")[0] or part.file)
                rows = [json.dumps(row) for row in metric.read_whole_file(path)] if part.json else []
                signs = _read(part, iter(rows) if rows else metric.backwards(path), places, whole=True)
                signs = _join_end(signs, printed, places)
            return places.add_reached(signs)
    except PlumblineError:  # it took too long
        return LogEnd(unread=True)


def format_place(place: dict[str, float], called: str) -> str:
    """State where a run's last value stands: ``step 500``; ``value 12 of val_loss``."""
    if "values" in place:
        return f"value {place['values']:g} of {called}"
    return ", ".join(f"{name} {number:.10g}" for name, number in sorted(place.items()))


class _Counter:
    """The numbers behind a name in lines of one shape, the last first."""

    def __init__(self) -> None:
        self.largest = self.latest = self.interval = 0.0
        self.lines = self.rises = self.falls = 0

    def add(self, number: float) -> None:
        rise = self.latest - number if self.lines else 0.0
        self.lines, self.rises, self.falls = self.lines + 1, self.rises + (rise > 0), self.falls + (rise < 0)
        self.largest, self.interval, self.latest = max(self.largest, number), max(self.interval, rise), number


class _Places:
    """The epochs and steps that lines name, and how many of them have a value of the metric."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[str, _Counter]] = {name: {} for name in _PLACE}
        self._of_metric: dict[str, _Counter] = {}
        self.values = 0

    def add(self, line: str, *, has_value: bool = False) -> None:
        """Add a line that stands before those that were added."""
        self.values += has_value
        if not _NAMES_PLACE.search(line):
            return
        for name, pattern in _PLACE.items():
            counters = self._counters[name]
            for at, match in reversed(list(enumerate(islice(pattern.finditer(line), _MOST)))):
                before = line[max(0, match.start() - 2 * _BEFORE) : match.start(1)]
                shape = f"{_shape(before)[-_BEFORE:]}#{line[match.end() : match.end() + _BEFORE].strip() and ' '}"
                counter = counters.setdefault(shape, _Counter())
                counter.add(float(match[1].replace(",", "")))
                if has_value and not at:
                    self._of_metric.setdefault(name, counter)

    def choose_reached(self) -> dict[str, _Counter]:
        """Choose the counter of each name that came farthest."""
        chosen = {}
        for name, counters in self._counters.items():
            growing = [counter for counter in counters.values() if counter.rises > 2 * counter.falls]
            if not growing and name in self._of_metric and self._of_metric[name].lines == 1:
                growing = [self._of_metric[name]]
            if growing:
                chosen[name] = max(growing, key=lambda counter: counter.largest)
        return chosen

    def add_reached(self, end: LogEnd) -> LogEnd:
        """Add what was reached to a run's end."""
        reached = self.choose_reached()
        values = {"values": float(self.values)} if self.values else {}
        place = {name: counter.largest for name, counter in reached.items()} or values
        interval = {name: counter.interval for name, counter in reached.items()}
        return msgspec.structs.replace(end, place=place, interval=interval)


def _read(part: MetricPart, lines: Iterator[str], places: _Places, *, whole: bool) -> LogEnd:
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
    end = _read_end(part.called, after[::-1], without_value)
    for line in after:
        places.add(line, has_value=line is after[-1] and without_value is not None)
    nulls = set[str]()
    for line in islice(lines, LINES):
        places.add(line, has_value=metric.has_value(part, line))
        nulls.update(_NULL.findall(line) if part.json else ())
        for kind in _find_kinds(part.called, line) if end.signs and _ANY.search(line) else ():
            if kind in end.signs:
                end.beside.append(f"{end.signs.pop(kind)}, as it did before its last {part.called}")
    if not whole:
        places.values = 0  # not all of them are there
    elif not places.choose_reached():
        places.values += sum(metric.has_value(part, line) for line in lines)
    if part.json:  # a number that was nan, as many programs write it
        for line in after[:-1]:
            for name in _NULL.findall(line):
                is_loss = _LOSS.search(name) or name == part.called or part.called.endswith(f".{name}")
                if name not in nulls and is_loss:
                    end.signs.setdefault(f"null {name}", _shorten(line))
    return end


def _join_end(end: LogEnd, printed: Iterator[str], places: _Places) -> LogEnd:
    """Add what was printed to what the metric's file says: from the last number of a loss on, or else the last line."""
    after = list(islice(printed, LAST))
    for line in chain(after, islice(printed, LINES)):
        places.add(line)
    loss = next((at for at, line in enumerate(after) if _HAS_LOSS.search(line)), None)
    more = _read_end("", _find_last(after[::-1]) if loss is None else after[loss::-1])
    return msgspec.structs.replace(
        end, diverged=end.diverged or more.diverged, signs=more.signs | end.signs, beside=[*end.beside, *more.beside]
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
            rest = range(at + 1, min(at + LAST, len(lines)))
            below = next((place for place in rest if lines[place][:1].strip()), rest.stop)
            error = lines[below].strip() if below < len(lines) else ""
            around = "\n".join(lines[max(0, at - 1) : below])
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
        is_best = bool(_BEST.search(re.split(r"\d", line[max(0, value.start() - _BEFORE) : value.end(1)])[-1]))
        is_metric = bool(called) and _normalize_name(label) == _normalize_name(called)
        if (is_metric or _TRAINING.fullmatch(label)) and not is_best:
            kinds.append("")
        elif is_nan or (is_loss and not is_best):
            kinds.append(f"nan {_shape(label)}")
        return " "

    line = _DENIAL.sub(" ", _LIST.sub(_join_values, " ".join(line.split())))
    line = _COUNT.sub(" ", _AFTER_WORDS.sub(name, _NAMED.sub(name, line)))
    has_nan = _IS_NAN.search(line) or any(value[1][:3].lower() == "nan" for value in _BARE.finditer(line))
    if has_nan and not _SCALE.search(line):
        kinds.append(f"nan: {_shape(line)[:LETTERS]}")
    return kinds


def _join_values(numbers: re.Match[str]) -> str:
    """A list of numbers as one: which of them is a nan differs from run to run."""
    rest = _NUMBER.sub("", _BARE.sub("", numbers[1]))
    return "[nan]" if "nan" in numbers[1].lower() and not any(map(str.isalpha, rest)) else numbers[0]


def _shape(line: str) -> str:
    """A line, or a part of one, without its numbers."""
    return _NUMBER.sub("#", " ".join(line.lower().split()))


def _normalize_name(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).lower()


def _shorten(line: str) -> str:
    return repr(" ".join(line.split())[:LETTERS])


class ComparedEnd(Struct, frozen=True):
    """What a comparison shows of a run: `why` it counts as crashed, empty if it does not, and `remarks` on its end."""

    why: str = ""
    remarks: list[str] = []


def compare(result: Result, others: Collection[Result], called: str, *, may_be_shorter: bool = False) -> ComparedEnd:
    """Compare a finished run with finished runs of the baseline (`others`, without itself); `called` is the metric.

    `may_be_shorter`: an end at an earlier step is reported and is not a failure.
    """
    remarks, whys = list(result.remarks), []
    remarks += process_ends.describe_new_exits(result.ended_at_once, [other.ended_at_once for other in others])
    complete = [other for other in others if other.failed is not None]
    has = "no run of the baseline has that" if complete or not others else _UNKNOWN
    theirs = {process_ends.kind(end) for other in complete for end in (*(other.failed or ()), *other.failed_beside)}
    alike = [end for end in result.failed or () if process_ends.kind(end) in theirs]
    if alike:
        remarks.append(f"{process_ends.describe_failed_processes(alike)}, as runs of the baseline have it")
    if unmatched := [end for end in result.failed or () if end not in alike]:
        whys.append(f"{process_ends.describe_failed_processes(unmatched)}, and {has}")
    for kind, sign in result.signs.items():
        text = f"at its end it printed {sign}"
        if any(kind in other.signs for other in others):
            remarks.append(f"{text}, as runs of the baseline do")
        else:
            whys.append(f"{text}, and {has}")
    if early := _describe_early_end(result, others, called):
        text, of_all = early
        (whys if of_all and not may_be_shorter else remarks).append(text)
    return ComparedEnd(why="; ".join(dict.fromkeys(whys)), remarks=list(dict.fromkeys(remarks)))


def tell_of_baseline(result: Result) -> ComparedEnd:
    """List the remarks on the end of a run of the baseline, which is compared with none."""
    failed = [process_ends.describe_failed_processes(result.failed)] if result.failed else []
    signs = [f"at its end it printed {sign}" for sign in result.signs.values()]
    return ComparedEnd(remarks=[*result.remarks, *failed, *signs])


def _describe_early_end(result: Result, others: Collection[Result], called: str) -> tuple[str, bool] | None:
    """State that a run ended before all runs of the baseline, and whether that is sure; None if it did not.

    The epoch counts before the step, as larger batches make fewer steps. An end is sure where the baseline's runs end
    at one place, which the run cannot have reached behind the last of its own lines.
    """
    ended = f"it ended at {format_place(result.place, called)}"
    seconds = [other.seconds for other in others]  # those with a budget of time take as long as the baseline's do
    as_long = (1 - _AS_LONG) * min(seconds, default=0) <= result.seconds <= (1 + _AS_LONG) * max(seconds, default=0)
    sure = len(others) >= LEAST and not (as_long and min(seconds) >= _LONG_SECONDS)
    alike = [other for other in others if other.place.keys() & result.place.keys()]
    if not alike and result.place and any(other.place for other in others):
        other = next(other for other in others if other.place)
        return f"{ended}, and those of the baseline at {format_place(other.place, called)}", False
    for name in ("epoch", "step", "values"):
        theirs = sorted((other for other in alike if name in other.place), key=lambda other: other.place[name])
        if name not in result.place or not theirs:
            continue
        first, last = theirs[0], theirs[-1]
        missing = first.place[name] - result.place[name]
        if missing <= 0:
            sure = sure and name != "epoch"
            continue
        interval = max(result.interval.get(name, 0.0), _PART_OF_EPOCH if name == "epoch" else 0.0)
        within = missing < interval or missing == interval <= _PART_OF_WAY * first.place[name]
        at_one_place = first.place[name] == last.place[name] and len(theirs) == len(others)
        of_first, of_last = (format_place(other.place, called) for other in (first, last))
        if sure and at_one_place and name != "values" and not within:
            remedy = "where a change is to train fewer steps, write fewer_steps = true under [run] of plumbline.toml"
            return f"it was not finished: {ended}, and all runs of the baseline at {of_first} ({remedy})", True
        until = f" to {of_last}" if of_last != of_first else ""
        return f"{ended}, and those of the baseline at {of_first}{until}", False
    return None
