"""Reads at which step or epoch a run ended and where its last value stands, and compares both with the baseline's runs.

The step or epoch reached is a number behind that name that grows over lines of one shape, or that stands in the only
line with the metric: what is printed once in addition is a setting. That of the last value stands in its own line, or
else is the number that such lines have next, as they go on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from math import isclose
from typing import Any

from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.requests import LastValue, Result

#: Letters before a number that make its shape, and numbers of a line that are read.
BEFORE, _MOST = 60, 100
#: What makes a value the start of a search for the best, or the best itself.
BEST = re.compile(r"(?<![a-z])(?:best|min|max|peak|record|lowest|highest|prev|init)", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?", re.IGNORECASE)
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
#: Texts and flags of a row that are kept, letters of each, and rows within rows; words before a printed value; and the
#: part of a value by which one that is printed again, as the best one, may differ.
_TEXTS, _LETTERS, _DEPTH, _WORDS, _REPEATED = 20, 60, 4, 8, 1e-3
#: A word of a line without its numbers, but for a unit; and what names a part of the data.
_WORD = re.compile(r"(?<![\w#/.-])[a-z_][\w-]*")
_DATA = re.compile(r"(?:pre)?train|val|test|eval|dev|held|hold", re.IGNORECASE)
_FLAGS = frozenset(("true", "false", "yes", "no"))
#: Runs of the baseline that must end at one place before an earlier end is a failure: one alone proves nothing.
LEAST = 2
#: Runs that take as long as the baseline's, up to this part of that, have a budget of time: of runs of fewer seconds
#: than that the start is too large a part to say so.
_AS_LONG, _LONG_SECONDS = 0.03, 10.0
#: The part of the way, at most, of which one line may be missing at the end, as where steps are counted from 0 or time
#: is up; and the part of an epoch, as of 3 epochs of which the last batches are left out (2.98).
_PART_OF_WAY, _PART_OF_EPOCH = 0.25, 0.5


def format_place(place: Mapping[str, float], called: str) -> str:
    """State where a run's last value stands: ``step 500``; ``value 12 of val_loss``."""
    if "values" in place:
        return f"value {place['values']:g} of {called}"
    return ", ".join(f"{name} {number:.10g}" for name, number in sorted(place.items()))


def remove_numbers(line: str) -> str:
    """A line, or a part of one, without its numbers: its shape."""
    return NUMBER.sub("#", " ".join(line.lower().split()))


class Counter:
    """The numbers behind a name in lines of one shape, the last first.

    Attributes:
        largest, interval: of all lines, and from a line to the next.
        behind: the number of the first line behind the run's last value; None without such a line.
        before, until: of the last line up to that of the value, and the largest up to there; None without one.
    """

    def __init__(self) -> None:
        self.largest = self.latest = self.interval = 0.0
        self.lines = self.rises = self.falls = 0
        self.behind: float | None = None
        self.before: float | None = None
        self.until: float | None = None

    @property
    def grows(self) -> bool:
        """Whether it counts what a run goes through, which may begin again now and then."""
        return self.rises > 2 * self.falls

    def add(self, number: float, *, is_behind: bool) -> None:
        """Add the number of a line that stands before those that were added; `is_behind` the run's last value."""
        rise = self.latest - number if self.lines else 0.0
        self.lines, self.rises, self.falls = self.lines + 1, self.rises + (rise > 0), self.falls + (rise < 0)
        self.largest, self.interval, self.latest = max(self.largest, number), max(self.interval, rise), number
        if is_behind:
            self.behind = number
        else:
            self.before = number if self.before is None else self.before
            self.until = max(number, self.until or 0.0)

    @property
    def begins_again(self) -> bool:
        """Whether it begins again right behind the last value and nowhere else, as what comes behind training does."""
        return self.behind is not None and self.behind < (self.before or 0.0) and self.falls == 1

    def bound_value(self) -> tuple[float, float]:
        """The number of the last value where its own line has none, and by how much it may be smaller."""
        if self.behind is None or self.begins_again:
            return self.until or 0.0, 0.0
        return self.behind, max(0.0, self.behind - (self.before or 0.0))


class Places:
    """The epochs and steps that lines name, and how many of them have a value of the metric."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[str, Counter]] = {name: {} for name in _PLACE}
        self._of_metric: dict[str, Counter] = {}
        self._of_value: dict[str, float] = {}
        self._rows: list[tuple[tuple[str, ...], dict[str, str]]] = []
        self._last: float | None = None
        self._has_value = self._is_json = False
        self.values = 0

    def add(self, line: str, value: tuple[str, str, str] | None = None) -> None:
        """Add a line that stands before those that were added; `value`: what `metric.split_at_value` says of it."""
        has_value = value is not None
        is_last = has_value and not self._has_value
        self._has_value |= has_value
        self.values += has_value
        if value is not None:
            self._add_row(line, *value[:2])
        if not _NAMES_PLACE.search(line):
            return
        for name, pattern in _PLACE.items():
            counters = self._counters[name]
            for at, match in reversed(list(enumerate(islice(pattern.finditer(line), _MOST)))):
                head = line[max(0, match.start() - 2 * BEFORE) : match.start(1)]
                shape = f"{remove_numbers(head)[-BEFORE:]}#{line[match.end() : match.end() + BEFORE].strip() and ' '}"
                counter, number = counters.setdefault(shape, Counter()), float(match[1].replace(",", ""))
                counter.add(number, is_behind=not self._has_value)
                if has_value and not at:
                    self._of_metric.setdefault(name, counter)
                    if is_last and not BEST.search(line[: match.start()]):
                        self._of_value[name] = number

    def _add_row(self, line: str, head: str, text: str) -> None:
        matches = ((name, pattern.search(line)) for name, pattern in _PLACE.items())
        at = tuple(f"{name} {match[1].replace(',', '')}" for name, match in matches if match)
        if line.lstrip().startswith("{") and isinstance(row := metric.read_row(line), dict):
            self._is_json = True
            self._rows.append((at, dict(islice(_list_texts(row, head), _TEXTS))))
            return
        number, words = metric.number(text), _WORD.findall(remove_numbers(head))
        self._last = number if not self._rows else self._last
        is_repeated = number is not None and self._last is not None and isclose(number, self._last, rel_tol=_REPEATED)
        if not self._rows or not is_repeated:
            self._rows.append((at, {"": " ".join(words)} if 0 < len(words) <= _WORDS else {}))

    def choose_reached(self) -> dict[str, Counter]:
        """Choose the counter of each name that came farthest."""
        counter_by_name = {}
        for name, counters in self._counters.items():
            growing = [counter for counter in counters.values() if counter.grows]
            if not growing and name in self._of_metric and self._of_metric[name].lines == 1:
                growing = [self._of_metric[name]]
            if growing:
                counter_by_name[name] = max(growing, key=lambda counter: counter.largest)
        return counter_by_name

    def locate_value(self) -> LastValue:
        """Where the last value stands, by the lines that were added."""
        place, span, is_late, is_followed = {}, {}, False, False
        for name, counters in self._counters.items() if self._has_value else ():
            growing = [counter for counter in counters.values() if counter.grows]
            metric_counter, number = self._of_metric.get(name), self._of_value.get(name)
            one_step = (
                metric_counter is not None
                and not metric_counter.rises + metric_counter.falls
                and (metric_counter.lines == 1 or self._is_json)
            )
            if metric_counter is not None and number is not None and (metric_counter.grows or one_step):
                place[name] = number
                is_late |= any(
                    number < (counter.until or 0.0)
                    for counter in ([metric_counter] if metric_counter.grows else growing)
                )
            elif growing:
                numbers = [each.bound_value() for each in growing]
                place[name], span[name] = max(numbers, key=lambda each: (each[0], -each[1]))
                is_followed |= any(each.begins_again for each in growing)
        at, row = self._rows[0] if self._rows else ((), {})
        number_of = {key: len({texts[key] for _, texts in self._rows if key in texts}) for key in row}
        row = {key: text for key, text in row.items() if not text.isdigit() or number_of[key] <= 2}
        pairs = ((key, texts[key]) for key in row for where, texts in self._rows if where == at != () and key in texts)
        other_rows: dict[str, list[str]] = {}
        for key, text in dict.fromkeys(pairs):
            if text != row[key]:
                other_rows.setdefault(key, []).append(text)
        return LastValue(
            place=place or self.count_values(),
            span=span,
            is_late=is_late,
            is_followed=is_followed,
            row=row,
            other_rows=other_rows,
        )

    def count_values(self) -> dict[str, float]:
        """How many values there are, as a place; empty if that is not known."""
        return {"values": float(self.values)} if self.values else {}


def describe_early_end(result: Result, base_runs: Collection[Result], called: str) -> tuple[str, bool] | None:
    """State that a run ended before all runs of the baseline, and whether that is sure; None if it did not.

    The epoch counts before the step, as larger batches make fewer steps. An end is sure where the baseline's runs end
    at one place, which the run cannot have reached behind the last of its own lines.
    """
    ended = f"it ended at {format_place(result.place, called)}"
    is_sure = len(base_runs) >= LEAST and not _took_as_long(result, base_runs)
    comparable_runs = [run for run in base_runs if run.place.keys() & result.place.keys()]
    if not comparable_runs and result.place and any(run.place for run in base_runs):
        run = next(run for run in base_runs if run.place)
        return f"{ended}, and those of the baseline at {format_place(run.place, called)}", False
    for name in ("epoch", "step", "values"):
        theirs = sorted((run for run in comparable_runs if name in run.place), key=lambda run: run.place[name])
        if name not in result.place or not theirs:
            continue
        first, last = theirs[0], theirs[-1]
        shortfall = first.place[name] - result.place[name]
        if shortfall <= 0:
            is_sure = is_sure and name != "epoch"
            continue
        interval = max(result.interval.get(name, 0.0), _PART_OF_EPOCH if name == "epoch" else 0.0)
        is_within = shortfall < interval or shortfall == interval <= _PART_OF_WAY * first.place[name]
        at_one_place = first.place[name] == last.place[name] and len(theirs) == len(base_runs)
        of_first, of_last = (format_place(run.place, called) for run in (first, last))
        if is_sure and at_one_place and name != "values" and not is_within:
            remedy = "where a change is to train fewer steps, write fewer_steps = true under [run] of plumbline.toml"
            return f"it was not finished: {ended}, and all runs of the baseline at {of_first} ({remedy})", True
        until = f" to {of_last}" if of_last != of_first else ""
        return f"{ended}, and those of the baseline at {of_first}{until}", False
    return None


def describe_early_value(result: Result, base_runs: Collection[Result], called: str) -> tuple[str, bool] | None:
    """State that the last value of a run is of an earlier place than those of all runs of the baseline, though the run
    went on, and whether that is sure; None if it is not.

    It is not sure of a run that ended early as well, where that has a reason or little is missing, nor of a value that
    stands behind lines of later steps, as that of the best checkpoint does, nor within what lies between two lines of
    the baseline.
    """
    same_epochs = False
    comparable_runs = [run for run in base_runs if run.last.place.keys() & result.last.place.keys()]
    for name in ("epoch", "step", "values"):
        theirs = [run for run in comparable_runs if name in run.last.place]
        number = result.last.place.get(name)
        if number is None or not theirs:
            continue
        first, last = (choose(theirs, key=_read_place(name)) for choose in (min, max))
        shortfall = first.last.place[name] - number
        if shortfall <= 0 or number >= result.place.get(name, number + 1):  # the end itself is compared elsewhere
            same_epochs |= name == "epoch" and shortfall <= 0
            continue
        of_run, of_first, of_last = (
            format_place({name: each.last.place[name]}, called) for each in (result, first, last)
        )
        is_sure = len(theirs) == len(base_runs) >= LEAST and of_first == of_last and not result.last.is_late
        is_sure = is_sure and shortfall >= max(run.last.span.get(name, 0.0) for run in theirs)
        if result.place.get(name, 0.0) < min(run.place.get(name, 0.0) for run in theirs):
            has_reason = same_epochs or _took_as_long(result, base_runs)
            is_sure = is_sure and not has_reason and shortfall > _PART_OF_WAY * first.last.place[name]
        if is_sure and name != "values":
            remedy = (
                f"have it state {called} at its end; where an earlier one is meant, write fewer_steps = true under "
                "[run] of plumbline.toml"
            )
            of_all = f"those of all runs of the baseline of {of_first} ({remedy})"
            return f"it was not finished: its last {called} is of {of_run}, and {of_all}", True
        until = f" to {of_last}" if of_last != of_first else ""
        return f"its last {called} is of {of_run}, and those of the baseline of {of_first}{until}", False
    if comparable_runs and result.last.is_followed and not any(run.last.is_followed for run in base_runs):
        at = format_place(result.last.place, called)
        return f"its steps begin again behind its last {called}, which is of {at}; none of the baseline do", False
    if comparable_runs or not result.place or not any(run.last.place for run in base_runs):
        return None
    run = next(run for run in base_runs if run.last.place)
    of_run = format_place(result.last.place, called) or "a step that is not known, as too much is printed behind it"
    return (
        f"its last {called} is of {of_run}, and those of the baseline of {format_place(run.last.place, called)}",
        False,
    )


def describe_other_row(result: Result, base_runs: Collection[Result], called: str) -> tuple[str, bool] | None:
    """State that the last value of a run stands in a row of another kind than those of all runs of the baseline, by
    what is beside it, and whether that is sure: where a run has rows of both kinds at one step; None if it does not.

    A flag, as of the best value, makes no other kind where something else tells the rows of a step apart and is alike.
    """
    theirs: dict[str, str] = {}
    for key in result.last.row:
        texts = {run.last.row.get(key, "") for run in base_runs}
        if len(texts) == 1:
            theirs[key] = min(texts)
    of_one_step = [last.other_rows for last in (result.last, *(run.last for run in base_runs))]
    is_alike = any(result.last.row[key] == theirs[key] for key in theirs if any(key in rows for rows in of_one_step))
    remark = None
    for key, their in theirs.items():
        text = result.last.row[key]
        if their in ("", text) or (is_alike and (text in _FLAGS or text.isdigit())):
            continue
        kind, of_kind = (f"row of {key} {text!r}", f"{key} {their!r}") if key else (f"line {text!r}", repr(their))
        sentence = f"its last {called} stands in a {kind}, and those of the baseline of {of_kind}"
        if their in of_one_step[0].get(key, ()) or any(text in rows.get(key, ()) for rows in of_one_step[1:]):
            return f"{sentence}: it is another measure (file and pattern under [metric] name the kind of rows)", True
        if key and _DATA.match(text) and _DATA.match(their):
            remark = remark or (sentence, False)
    return remark


def _list_texts(row: dict[str, Any], metric_key: str) -> Iterator[tuple[str, str]]:
    """The texts, flags and digits of a row, by keys with dots, the outer ones first; without its value."""
    inner: list[tuple[str, dict[str, Any]]] = [("", row)]
    for prefix, each in inner:  # which grows
        for name, value in each.items():
            key = f"{prefix}{name}"
            if isinstance(value, dict) and prefix.count(".") < _DEPTH:
                inner.append((f"{key}.", value))
            elif isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 9 and key != metric_key):
                yield key, str(value).lower()
            elif isinstance(value, str) and metric.number(value) is None:
                yield key, value[:_LETTERS]


def _read_place(name: str) -> Callable[[Result], float]:
    return lambda result: result.last.place[name]


def _took_as_long(result: Result, base_runs: Collection[Result]) -> bool:
    """Whether a run took the time of the baseline's, as those with a budget of time do."""
    seconds = [run.seconds for run in base_runs]
    shortest, longest = min(seconds, default=0.0), max(seconds, default=0.0)
    is_as_long = (1 - _AS_LONG) * shortest <= result.seconds <= (1 + _AS_LONG) * longest
    return is_as_long and shortest >= _LONG_SECONDS
