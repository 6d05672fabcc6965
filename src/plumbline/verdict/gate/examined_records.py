"""Holds what a record's logs say of it, and decides which of their runs count, each once, and with which value."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from pathlib import Path

from plumbline.core.files import format_path
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import join_with_and, quote_name
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.settings_comparison import SettingsComparison
from plumbline.verdict.sources.records import Printed, Record
from plumbline.verdict.sources.training_log import Evaluation, LoggedRun, TrainingLog

#: The kind of a headline that misses its logs by less than two units of its last digit: its runs are still its runs.
LAST_DIGIT = "last digit"
#: Kinds that break a rule, while the logs say what the record says.
TOO_FEW, LEFT_OUT, STOP = "number of runs", "left out", "stop step"
#: The kind of what no log shows: nothing says that it does not hold.
NOT_SHOWN = "not shown"


#: Where a printed value stands: runs with one of their evaluations.
Hits = list[tuple[LoggedRun, Evaluation]]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something for which a record is not what its logs say: of a kind, in words."""

    kind: str
    words: str


@dataclass(kw_only=True)
class ExaminedRecord:
    """What a record's logs say of it.

    Attributes:
        values: the runs that count, each once; origin: where they are from.
        copies: how many files, or parts of files, hold a run that another one holds.
        copied_seeds: of the copies that say another seed than their original, the original by that seed.
        instead: what a headline that is not the runs' mean is, where that is known.
        faults: for which it cannot be judged; `notes`: what a reader has to know beside them.
        headline, runs, code, machine, stop: what was found of each, in words.
        looks: among how many evaluated steps the claimed one was chosen; 1 where it was fixed beforehand.
        settings: how the printed settings of its runs compare.
        headline_agrees: whether the headline was computed again from the logs, and is what they say.
        mean: of the values; None without any.
    """

    record: Record
    values: tuple[RunEvidence, ...] = ()
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    headline: str = ""
    runs: str = ""
    code: str = ""
    machine: str = ""
    stop: str = ""
    looks: int = 1
    origin: str = ""
    copies: int = 0
    copied_seeds: dict[str, LoggedRun] = field(default_factory=dict)
    instead: str = ""
    headline_agrees: bool = False
    settings: SettingsComparison = field(default_factory=SettingsComparison)

    @property
    def mean(self) -> float | None:
        """The mean of the values that are finite."""
        return math.fsum(self.known) / len(self.known) if self.known else None

    @property
    def known(self) -> list[float]:
        """The values of the runs that have one."""
        return [each.value for each in self.values if each.value is not None]

    def blame(self, kind: str, words: str) -> None:
        """Note something for which the record is not what its logs say."""
        self.faults.append(Fault(kind, words))

    @property
    def pools(self) -> bool:
        """Whether its runs may tell the noise: of one configuration, each once, of one metric."""
        return all(fault.kind in (LAST_DIGIT, TOO_FEW, LEFT_OUT, STOP) for fault in self.faults)

    @property
    def checked(self) -> bool:
        """Whether there are logs, and they say what the record says."""
        return (
            bool(self.values)
            and self.headline_agrees
            and all(fault.kind in (TOO_FEW, LEFT_OUT, STOP) for fault in self.faults)
        )


def count_runs(found: ExaminedRecord, rules: Rules, root: Path) -> None:
    """Find the runs of a record, and what is wrong about them."""
    distinct = _each_once(found, root)
    if distinct:
        (_of_table if rules.table is not None else _of_submission)(distinct, found, rules, root)


def _each_once(found: ExaminedRecord, root: Path) -> list[LoggedRun]:
    """The runs of all logs, without copies; a log that holds its code is kept before one that does not."""
    record = found.record
    order = {log.file: (log.file != record.linked, not log.code) for log in record.logs}
    runs = sorted((run for log in record.logs for run in log.runs), key=lambda run: (order[run.file], -len(run.values)))
    # A file that repeats one line of another's output is no log.
    said = {(each.step, each.printed) for run in runs if len(run.evaluations) > 1 for each in run.evaluations}
    runs = [
        run
        for run in runs
        if len(run.evaluations) > 1 or not {(each.step, each.printed) for each in run.evaluations} <= said
    ]
    distinct: list[LoggedRun] = []
    holders: dict[tuple[object, str], list[int]] = {}
    first = ""
    for run in runs:
        near = Counter(at for key in run.values.items() for at in holders.get(key, ()))
        same = next((distinct[at] for at, _ in near.most_common(20) if run.same_as(distinct[at])), None)
        if same is not None:
            found.copies += 1
            if run.seed and run.seed != same.seed:
                found.copied_seeds.setdefault(run.seed, same)
            first = first or (
                f"{quote_name(format_path(run.file, root))} holds the run of {quote_name(format_path(same.file, root))}"
            )
            continue
        for key in run.values.items():
            holders.setdefault(key, []).append(len(distinct))
        distinct.append(run)
    if first:
        found.notes.append(f"{first[0].upper()}{first[1:]}; it is counted once.")
    return distinct


def _value_at(run: LoggedRun, step: int | None, label: str | None = None) -> Evaluation | None:
    """The evaluation that counts: at the claimed step, or, where none is claimed, the last."""
    at = run.find_evaluations(step) if step is not None else run.evaluations[-1:]
    chosen = [each for each in at if label is None or each.label == label]
    return chosen[-1] if chosen else None


def _of_table(distinct: Sequence[LoggedRun], found: ExaminedRecord, rules: Rules, root: Path) -> None:
    record = found.record
    step, n = record.step, record.printed_n
    linked = [log for log in record.logs if log.file == record.linked]
    label = _label(distinct, step, found)
    there = [run for run in distinct if _value_at(run, step, label) is not None]
    if step is not None:
        short = [run for run in distinct if run not in there and run.last_step < step <= (run.planned or 0)]
    else:
        short = [run for run in distinct if run.planned is not None and run.last_step < run.planned]
        there = [run for run in there if run not in short]
    ways: list[tuple[str, Sequence[LoggedRun]]] = [("all logs of its folder", there)]
    if linked:
        ways += _ways(linked[0], record, there)
    if n is None:
        chosen = next((way for way in ways if way[0] == SAME_LENGTH), ways[0])
    else:
        chosen = next((way for way in ways if len(way[1]) == n), ways[0])
    found.origin, runs = chosen
    lengths = {run.planned for run in runs}
    own = [run for run in short if run.planned in lengths or not runs]
    if own and (n is None or len(runs) < n):
        where = f"{quote_name(format_path(own[0].file, root))} at {own[0].last_step:,}"
        words = f"{format_count(len(own), 'log')} end before the claimed step, {where}"
        found.blame("truncated", words)
    if n is not None and len(runs) != n:
        if len(runs) + found.copies == n:
            found.blame("duplicate", f"{n} runs are claimed, and {found.copies} of them are copies")
        elif not own or len(runs) + len(own) != n:
            found.blame("runs", f"{n} runs are claimed, and the logs hold {len(runs)} at the claimed step")
    _values(found, runs, step, label)
    _other_metric(record, runs, found, rules)
    others = len(there) - len(runs)
    if others:
        found.notes.append(
            f"{format_count(others, 'further run')} of its folder reach the claimed step and are not counted."
        )


SAME_LENGTH = "the logs of the length of the one that is named"


def _ways(linked: TrainingLog, record: Record, there: Sequence[LoggedRun]) -> list[tuple[str, Sequence[LoggedRun]]]:
    """The further ways to say which runs are meant, from the one log that a row names."""
    code = {log.file: log.code_hash for log in record.logs}
    planned = {run.planned for run in linked.runs}
    return [
        ("the log that is named", [run for run in there if run.file == linked.file]),
        (SAME_LENGTH, [run for run in there if run.planned in planned]),
        (
            "the logs with the code of the one that is named",
            [run for run in there if code[run.file] == linked.code_hash],
        ),
    ]


def _label(runs: Sequence[LoggedRun], step: int | None, found: ExaminedRecord) -> str | None:
    """The label of the value's line: one that every run has at the claimed step; None where lines have no label."""
    sets = [
        labels
        for run in runs
        if (
            labels := {
                each.label for each in (run.find_evaluations(step) if step is not None else run.evaluations[-1:])
            }
        )
    ]
    if not sets or len(set.union(*sets)) == 1:
        return None
    shared = set.intersection(*sets)
    if not shared:
        names = join_with_and([quote_name(each or "no label") for each in sorted(set.union(*sets))[:4]])
        found.blame("metric", f"the runs print different metrics at the claimed step: {names}")
        return None
    return "" if "" in shared else min(shared)


def _values(found: ExaminedRecord, runs: Sequence[LoggedRun], step: int | None, label: str | None) -> None:
    values = []
    for run in runs:
        one = _value_at(run, step, label)
        assert one is not None
        # A run that was not a number later on, or before, has diverged.
        lost = any(not math.isfinite(each.value) for each in run.evaluations)
        values.append(run.evidence(one, lost=lost))
    found.values = tuple(values)


def _other_metric(record: Record, runs: Sequence[LoggedRun], found: ExaminedRecord, rules: Rules) -> None:
    """Where the headline is not the metric's mean, see whether it is that of another metric of the same lines."""
    if record.headline is None or found.mean is None or record.headline.fits(found.mean):
        return
    for form in rules.log.other_forms:
        beside = [_value_at(run, record.step, form.anchor) for run in runs]
        values = [one.value for one in beside if one is not None]
        if values and len(values) == len(runs) and record.headline.fits(math.fsum(values) / len(values)):
            words = f"the headline is the mean of {quote_name(form.anchor)}, not of {quote_name(rules.metric)}"
            found.instead = f"the mean of {quote_name(form.anchor)}"
            if rules.log.others_count:
                found.notes.append(f"{words[0].upper()}{words[1:]}.")
                found.values = tuple(run.evidence(one) for run, one in zip(runs, beside) if one)
            else:
                found.blame("metric", words)
            return


def _of_submission(distinct: Sequence[LoggedRun], found: ExaminedRecord, rules: Rules, root: Path) -> None:
    """Find the runs that a submission counts; where it prints no seeds, those of all its logs."""
    record = found.record
    if record.by_seed:
        _by_printed_seed(distinct, found, root)
        return
    label = _last_label(distinct)
    chosen = [
        (run, each)
        for run in distinct
        if (each := next((one for one in reversed(run.evaluations) if label is None or one.label == label), None))
    ]
    found.values, found.origin = tuple(run.evidence(each) for run, each in chosen), "all logs of its folder"
    if len(chosen) < len(distinct):
        found.blame("metric", f"{len(distinct) - len(chosen)} of {len(distinct)} logs end with another metric")
    if record.headline is None or not chosen:
        return
    values = [each.value for _, each in chosen]
    mean = math.fsum(values) / len(values)
    if not record.headline.fits(mean) and len(values) > 1 and any(map(record.headline.fits, values)):
        best = (max if rules.higher else min)(values)
        which = "the best" if record.headline.fits(best) else "one"
        found.instead = f"{which} of {len(chosen)} runs alone"
    elif not record.headline.fits(mean):
        other = next(
            (one.label for run in distinct for one in run.evaluations if record.headline.fits(one.value)), None
        )
        found.instead = f"the value of {quote_name(other or 'another line')}" if other is not None else ""


def _last_label(runs: Sequence[LoggedRun]) -> str | None:
    """The label of the last line that most runs end with."""
    labels = Counter(run.evaluations[-1].label for run in runs)
    return labels.most_common(1)[0][0] if labels else None


def _by_printed_seed(distinct: Sequence[LoggedRun], found: ExaminedRecord, root: Path) -> None:
    """Find the printed value of each seed in the log of that seed."""
    matched: dict[str, Hits] = {}
    without, differing = list[str](), list[str]()
    for seed, printed in found.record.by_seed.items():
        own = [run for run in distinct if run.seed == seed]
        if not own and seed in found.copied_seeds:
            own = [found.copied_seeds[seed]]
        hits = _hits(own, printed) or _hits([run for run in distinct if not run.seed], printed)
        elsewhere = [] if hits else _elsewhere(seed, found.record, distinct)
        if hits:
            matched[seed] = hits
        elif elsewhere:
            where = quote_name(format_path(elsewhere[0][0].file, root))
            found.blame("headline", f"the value of seed {quote_name(seed)} stands in a log of another seed, {where}")
            matched[seed] = elsewhere
        elif own:
            differing.append(seed)
            matched[seed] = [(run, run.evaluations[-1]) for run in own[:1]]
        else:
            without.append(seed)
    if without:
        found.blame("runs", f"no log of seed {join_with_and([quote_name(each) for each in without[:5]])}")
    label = _common_label(matched, differing, found)
    ended = [
        seed
        for seed in differing
        if label is not None and label not in {x.label for x in matched[seed][0][0].evaluations}
    ]
    for seed in ended:
        where = quote_name(format_path(matched[seed][0][0].file, root))
        found.blame("truncated", f"{where} ends before the line {quote_name(label or '')} that the other logs have")
        differing.remove(seed)
        del matched[seed]
    if differing:
        of = f"{format_count(len(differing), 'seed')}, {join_with_and([quote_name(each) for each in differing[:5]])},"
        words = f"the printed value of {of} is in no line of its log that the rules name"
        found.blame("headline", words)
    values, used = [], list[LoggedRun]()
    for hits in matched.values():
        run, one = next(((run, one) for run, one in hits if label is None or one.label == label), hits[0])
        if any(run is each for each in used):
            found.blame(
                "duplicate", f"the values of two seeds are of one run, {quote_name(format_path(run.file, root))}"
            )
            continue
        used.append(run)
        if not math.isfinite(one.value):
            one = hits[0][1]
        values.append(run.evidence(one))
    found.values, found.origin = tuple(values), "the logs of its seeds"
    spare = len(distinct) - len(used)
    if spare > 0:
        found.notes.append(f"{format_count(spare, 'further run')} of its folder are not among its seeds.")


def _elsewhere(seed: str, record: Record, distinct: Sequence[LoggedRun]) -> Hits:
    """Where the printed value of a seed stands in the log of another one, to all of its many digits."""
    printed = record.by_seed[seed]
    taken = {other for other, one in record.by_seed.items() if other != seed and one.value == printed.value}
    runs = [run for run in distinct if run.seed and run.seed != seed and run.seed not in taken]
    return _hits(runs, printed) if printed.decimals >= 6 else []


def _hits(runs: Sequence[LoggedRun], printed: Printed) -> Hits:
    """Where a printed value stands, the most exactly printed first."""
    found = []
    for run in runs:
        begin = bisect_left(run.by_value, printed.value - printed.edge, key=attrgetter("value"))
        for each in takewhile(lambda one: one.value <= printed.value + printed.edge, run.by_value[begin:]):
            found.append((run, each))
    return sorted(found, key=lambda one: -len(one[1].printed))


def _common_label(matched: dict[str, Hits], differing: Sequence[str], found: ExaminedRecord) -> str | None:
    labels = [{one.label for _, one in hits} for seed, hits in matched.items() if seed not in differing]
    if not labels:
        return None
    shared = set.intersection(*labels)
    if not shared:
        names = join_with_and([quote_name(each or "no label") for each in sorted(set.union(*labels))[:4]])
        found.blame("metric", f"the printed values of the seeds are of different lines of their logs: {names}")
        return None
    # The most exact of them.
    first = next(iter(matched.values()))
    return next((one.label for _, one in first if one.label in shared), min(shared))
