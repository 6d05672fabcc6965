"""Decides which runs of a record's logs count, each once, and what the value of each is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.files import shown
from plumbline.verdict.formatting import counted, listed, name
from plumbline.verdict.gate.records import CountedRuns, Record, RunValue
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.gate.submission_runs import of_submission
from plumbline.verdict.gate.training_log import Evaluation, LoggedRun, TrainingLog


def count_runs(record: Record, rules: Rules, root: Path) -> CountedRuns:
    """Find the runs of a record."""
    found = CountedRuns()
    distinct = _each_once(record, found, root)
    if not distinct:
        return found
    if rules.table is not None:
        _of_table(record, distinct, found, rules, root)
    else:
        of_submission(record, distinct, found, rules, root)
    return found


def _each_once(record: Record, found: CountedRuns, root: Path) -> list[LoggedRun]:
    """The runs of all logs, without copies; a log that holds its code is kept before one that does not."""
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
            first = first or f"{name(shown(run.file, root))} holds the run of {name(shown(same.file, root))}"
            continue
        for key in run.values.items():
            holders.setdefault(key, []).append(len(distinct))
        distinct.append(run)
    if first:
        found.notes.append(f"{first[0].upper()}{first[1:]}; it is counted once.")
    return distinct


def _value_at(run: LoggedRun, step: int | None, label: str | None = None) -> Evaluation | None:
    """The evaluation that counts: at the claimed step, or, where none is claimed, the last."""
    at = run.at(step) if step is not None else run.evaluations[-1:]
    chosen = [each for each in at if label is None or each.label == label]
    return chosen[-1] if chosen else None


def _of_table(record: Record, distinct: Sequence[LoggedRun], found: CountedRuns, rules: Rules, root: Path) -> None:
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
        where = f"{name(shown(own[0].file, root))} at {own[0].last_step:,}"
        words = f"{counted(len(own), 'log')} end before the claimed step, {where}"
        found.faults.append(("truncated", words))
    if n is not None and len(runs) != n:
        if len(runs) + found.copies == n:
            found.faults.append(("duplicate", f"{n} runs are claimed, and {found.copies} of them are copies"))
        elif not own or len(runs) + len(own) != n:
            found.faults.append(("runs", f"{n} runs are claimed, and the logs hold {len(runs)} at the claimed step"))
    _values(found, runs, step, label)
    _other_metric(record, runs, found, rules)
    others = len(there) - len(runs)
    if others:
        found.notes.append(
            f"{counted(others, 'further run')} of its folder reach the claimed step and are not counted."
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


def _label(runs: Sequence[LoggedRun], step: int | None, found: CountedRuns) -> str | None:
    """The label of the value's line: one that every run has at the claimed step; None where lines have no label."""
    sets = [
        labels
        for run in runs
        if (labels := {each.label for each in (run.at(step) if step is not None else run.evaluations[-1:])})
    ]
    if not sets or len(set.union(*sets)) == 1:
        return None
    shared = set.intersection(*sets)
    if not shared:
        names = listed([name(each or "no label") for each in sorted(set.union(*sets))[:4]])
        found.faults.append(("metric", f"the runs print different metrics at the claimed step: {names}"))
        return None
    return "" if "" in shared else min(shared)


def _values(found: CountedRuns, runs: Sequence[LoggedRun], step: int | None, label: str | None) -> None:
    values = []
    for run in runs:
        one = _value_at(run, step, label)
        assert one is not None
        # A run that was not a number later on, or before, has diverged.
        lost = any(not math.isfinite(each.value) for each in run.evaluations)
        values.append(RunValue(run, math.nan if lost else one.value, one.label))
    found.values = tuple(values)


def _other_metric(record: Record, runs: Sequence[LoggedRun], found: CountedRuns, rules: Rules) -> None:
    """Where the headline is not the metric's mean, see whether it is that of another metric of the same lines."""
    known = [each.value for each in found.values if math.isfinite(each.value)]
    if record.headline is None or not known or record.headline.fits(math.fsum(known) / len(known)):
        return
    for form in rules.other_forms:
        beside = [_value_at(run, record.step, form.anchor) for run in runs]
        values = [one.value for one in beside if one is not None]
        if values and len(values) == len(runs) and record.headline.fits(math.fsum(values) / len(values)):
            words = f"the headline is the mean of {name(form.anchor)}, not of {name(rules.metric)}"
            found.instead = f"the mean of {name(form.anchor)}"
            if rules.log.others_count:
                found.notes.append(f"{words[0].upper()}{words[1:]}.")
                found.values = tuple(RunValue(run, one.value, form.anchor) for run, one in zip(runs, beside) if one)
            else:
                found.faults.append(("metric", words))
            return
