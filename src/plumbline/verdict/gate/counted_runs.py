"""Decides which runs of a record's logs count, each once, and with which of their values."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from operator import attrgetter
from pathlib import Path

from plumbline.core.files import format_path
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import CRASH, RunEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.gate.examined_records import ExaminedRecord, Hits, has_diverged
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.sources.records import Printed, Record
from plumbline.verdict.sources.training_log import Evaluation, LoggedRun, TrainingLog


def choose_runs(examined: ExaminedRecord, rules: Rules, root: Path) -> None:
    """Find the runs of a record, and what is wrong about them."""
    distinct = _drop_copies(examined, root)
    if distinct:
        (_choose_table_runs if rules.table is not None else _choose_submission_runs)(distinct, examined, rules, root)


def _drop_copies(examined: ExaminedRecord, root: Path) -> list[LoggedRun]:
    """The runs of all logs, without copies; a log that holds its code is kept before one that does not."""
    record = examined.record
    order = {log.file: (log.file != record.linked, not log.code) for log in record.logs}
    runs = sorted((run for log in record.logs for run in log.runs), key=lambda run: (order[run.file], -len(run.values)))
    # A file that repeats one line of another's output is not a log.
    printed = {(each.step, each.printed) for run in runs if len(run.evaluations) > 1 for each in run.evaluations}
    runs = [
        run
        for run in runs
        if len(run.evaluations) > 1 or not {(each.step, each.printed) for each in run.evaluations} <= printed
    ]
    distinct: list[LoggedRun] = []
    holders: dict[tuple[object, str], list[int]] = {}
    first = ""
    for run in runs:
        candidates = Counter(index for key in run.values.items() for index in holders.get(key, ()))
        twin = next((distinct[index] for index, _ in candidates.most_common(20) if run.same_as(distinct[index])), None)
        if twin is not None:
            examined.copies += 1
            if run.seed and run.seed != twin.seed:
                examined.copied_seeds.setdefault(run.seed, twin)
            first = (
                first or f"{quote(format_path(run.file, root))} holds the run of {quote(format_path(twin.file, root))}"
            )
            continue
        for key in run.values.items():
            holders.setdefault(key, []).append(len(distinct))
        distinct.append(run)
    if first:
        examined.notes.append(f"{first[0].upper()}{first[1:]}; it is counted once.")
    return distinct


def _value_at(run: LoggedRun, step: int | None, label: str | None = None) -> Evaluation | None:
    """The evaluation that counts: at the claimed step, or, where none is claimed, the last."""
    evaluations = run.find_evaluations(step) if step is not None else run.evaluations[-1:]
    matches = [each for each in evaluations if label is None or each.label == label]
    return matches[-1] if matches else None


def _choose_table_runs(distinct: Sequence[LoggedRun], examined: ExaminedRecord, rules: Rules, root: Path) -> None:
    record = examined.record
    step, n = record.step, record.printed_n
    linked = [log for log in record.logs if log.file == record.linked]
    label = _choose_label(distinct, step, examined)
    at_step = [run for run in distinct if _value_at(run, step, label) is not None]
    if step is not None:
        short_runs = [run for run in distinct if run not in at_step and run.last_step < step <= (run.planned or 0)]
    else:
        short_runs = [run for run in distinct if run.planned is not None and run.last_step < run.planned]
        at_step = [run for run in at_step if run not in short_runs]
    selections: list[tuple[str, Sequence[LoggedRun]]] = [("all logs of its folder", at_step)]
    if linked:
        selections += _list_selections(linked[0], record, at_step)
    if n is None:
        choice = next((selection for selection in selections if selection[0] == SAME_LENGTH), selections[0])
    else:
        choice = next((selection for selection in selections if len(selection[1]) == n), selections[0])
    examined.origin, runs = choice
    lengths = {run.planned for run in runs}
    cut_runs = [run for run in short_runs if run.planned in lengths or not runs]
    if cut_runs and (n is None or len(runs) < n):
        where = f"{quote(format_path(cut_runs[0].file, root))} at {cut_runs[0].last_step:,}"
        text = f"{format_count(len(cut_runs), 'log')} end before the claimed step, {where}"
        examined.blame("truncated", text)
    if n is not None and len(runs) != n:
        if len(runs) + examined.copies == n:
            examined.blame("duplicate", f"{n} runs are claimed, and {examined.copies} of them are copies")
        elif not cut_runs or len(runs) + len(cut_runs) != n:
            examined.blame("runs", f"{n} runs are claimed, and the logs hold {len(runs)} at the claimed step")
    _set_values(examined, runs, step, label)
    _try_other_metrics(record, runs, examined, rules)
    examined.note_uncounted([run for run in at_step if not any(run is each for each in runs)], label)


SAME_LENGTH = "the logs of the length of the one that is named"


def _list_selections(
    linked: TrainingLog, record: Record, at_step: Sequence[LoggedRun]
) -> list[tuple[str, Sequence[LoggedRun]]]:
    """The further ways to say which runs are meant, from the one log that a row names."""
    code = {log.file: log.code_hash for log in record.logs}
    lengths = {run.planned for run in linked.runs}
    return [
        ("the log that is named", [run for run in at_step if run.file == linked.file]),
        (SAME_LENGTH, [run for run in at_step if run.planned in lengths]),
        (
            "the logs with the code of the one that is named",
            [run for run in at_step if code[run.file] == linked.code_hash],
        ),
    ]


def _choose_label(runs: Sequence[LoggedRun], step: int | None, examined: ExaminedRecord) -> str | None:
    """The label of the value's line: one that every run has at the claimed step; None if lines have no label."""
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
    shared = _share_labels(sets, examined, "the runs print different metrics at the claimed step")
    return min(shared, default=None)


def _share_labels(sets: Sequence[set[str]], examined: ExaminedRecord, fault: str) -> set[str]:
    """The labels that all have; without one the metric is blamed, with the labels after the `fault`."""
    shared = set.intersection(*sets)
    if not shared:
        names = join_with_and([quote(each or "no label") for each in sorted(set.union(*sets))[:4]])
        examined.blame("metric", f"{fault}: {names}")
    return shared


def _set_values(examined: ExaminedRecord, runs: Sequence[LoggedRun], step: int | None, label: str | None) -> None:
    examined.count([(run, each) for run in runs if (each := _value_at(run, step, label)) is not None])


def _try_other_metrics(record: Record, runs: Sequence[LoggedRun], examined: ExaminedRecord, rules: Rules) -> None:
    """Where the headline is not the metric's mean, see whether it is that of another metric of the same lines."""
    if record.headline is None or examined.mean is None or record.headline.fits(examined.mean):
        return
    for form in rules.log.other_forms:
        evaluations = [_value_at(run, record.step, form.anchor) for run in runs]
        values = [evaluation.value for evaluation in evaluations if evaluation is not None]
        if values and len(values) == len(runs) and record.headline.fits(math.fsum(values) / len(values)):
            text = f"the headline is the mean of {quote(form.anchor)}, not of {quote(rules.metric)}"
            examined.instead = f"the mean of {quote(form.anchor)}"
            if rules.log.others_count:
                examined.notes.append(f"{text[0].upper()}{text[1:]}.")
                examined.count([(run, evaluation) for run, evaluation in zip(runs, evaluations) if evaluation])
            else:
                examined.blame("metric", text)
            return


def _choose_submission_runs(distinct: Sequence[LoggedRun], examined: ExaminedRecord, rules: Rules, root: Path) -> None:
    """Find the runs that a submission counts; where it prints no seeds, those of all its logs."""
    record = examined.record
    if record.by_seed:
        _match_printed_seeds(distinct, examined, root)
        return
    label = _most_common_label(distinct)
    hits = [
        (run, each)
        for run in distinct
        if (each := next((last for last in reversed(run.evaluations) if label is None or last.label == label), None))
    ]
    examined.count(hits)
    examined.origin = "all logs of its folder"
    if len(hits) < len(distinct):
        examined.blame("metric", f"{len(distinct) - len(hits)} of {len(distinct)} logs end with another metric")
    if record.headline is None or not hits:
        return
    values = [each.value for _, each in hits]
    mean = math.fsum(values) / len(values)
    if not record.headline.fits(mean) and len(values) > 1 and any(map(record.headline.fits, values)):
        best_value = (max if rules.higher else min)(values)
        share = "the best" if record.headline.fits(best_value) else "one"
        examined.instead = f"{share} of {len(hits)} runs alone"
    elif not record.headline.fits(mean):
        other_label = next(
            (
                evaluation.label
                for run in distinct
                for evaluation in run.evaluations
                if record.headline.fits(evaluation.value)
            ),
            None,
        )
        examined.instead = f"the value of {quote(other_label or 'another line')}" if other_label is not None else ""


def _most_common_label(runs: Sequence[LoggedRun]) -> str | None:
    """The label of the last line that most runs end with."""
    labels = Counter(run.evaluations[-1].label for run in runs)
    return labels.most_common(1)[0][0] if labels else None


def _match_printed_seeds(distinct: Sequence[LoggedRun], examined: ExaminedRecord, root: Path) -> None:
    """Find the printed value of each seed in the log of that seed."""
    hits_by_seed: dict[str, Hits] = {}
    lost_runs: dict[str, LoggedRun | None] = {}
    missing_seeds, differing = list[str](), list[str]()
    for seed, printed in examined.record.by_seed.items():
        runs = [run for run in distinct if run.seed == seed]
        if not runs and seed in examined.copied_seeds:
            runs = [examined.copied_seeds[seed]]
        if not math.isfinite(printed.value) and (not runs or any(map(has_diverged, runs))):
            lost_runs[seed] = next((run for run in runs if run.seed == seed and has_diverged(run)), None)
            continue
        hits = _find_hits(runs, printed) or _find_hits([run for run in distinct if not run.seed], printed)
        other_hits = [] if hits else _find_in_other_seeds(seed, examined.record, distinct)
        if hits:
            hits_by_seed[seed] = hits
        elif other_hits:
            where = quote(format_path(other_hits[0][0].file, root))
            examined.blame("headline", f"the value of seed {quote(seed)} stands in a log of another seed, {where}")
            hits_by_seed[seed] = other_hits
        elif runs:
            differing.append(seed)
            hits_by_seed[seed] = [(run, run.evaluations[-1]) for run in runs[:1]]
        else:
            missing_seeds.append(seed)
    if missing_seeds:
        examined.blame("runs", f"no log of seed {join_with_and([quote(each) for each in missing_seeds[:5]])}")
    label = _choose_common_label(hits_by_seed, differing, examined)
    ended = [
        seed
        for seed in differing
        if label is not None and label not in {x.label for x in hits_by_seed[seed][0][0].evaluations}
    ]
    for seed in ended:
        where = quote(format_path(hits_by_seed[seed][0][0].file, root))
        examined.blame("truncated", f"{where} ends before the line {quote(label or '')} that the other logs have")
        differing.remove(seed)
        del hits_by_seed[seed]
    if differing:
        seeds = f"{format_count(len(differing), 'seed')}, {join_with_and([quote(each) for each in differing[:5]])},"
        text = f"the printed value of {seeds} is in no line of its log that the rules name"
        examined.blame("headline", text)
    choice, used_runs = Hits(), [run for run in lost_runs.values() if run is not None]
    for hits in hits_by_seed.values():
        run, evaluation = next((hit for hit in hits if label is None or hit[1].label == label), hits[0])
        if any(run is each for each in used_runs):
            examined.blame("duplicate", f"the values of two seeds are of one run, {quote(format_path(run.file, root))}")
            continue
        used_runs.append(run)
        choice.append((run, evaluation))
    examined.count(choice)
    examined.values += tuple(
        run.evidence(run.evaluations[-1], lost=True)
        if run is not None
        else RunEvidence(value=None, seed=seed, status=CRASH, word="without a number")
        for seed, run in lost_runs.items()
    )
    examined.origin = "the logs of its seeds"
    spare = [run for run in distinct if not any(run is each for each in used_runs)]
    examined.note_uncounted(spare, label)


def _find_in_other_seeds(seed: str, record: Record, distinct: Sequence[LoggedRun]) -> Hits:
    """Where the printed value of a seed stands in the log of another one, to all of its many digits."""
    printed = record.by_seed[seed]
    seeds_of_same_value = {
        other_seed
        for other_seed, other_value in record.by_seed.items()
        if other_seed != seed and other_value.value == printed.value
    }
    runs = [run for run in distinct if run.seed and run.seed != seed and run.seed not in seeds_of_same_value]
    return _find_hits(runs, printed) if printed.decimals >= 6 else []


def _find_hits(runs: Sequence[LoggedRun], printed: Printed) -> Hits:
    """Where a printed value stands: the last lines of their kind first, and of those the most exactly printed."""
    hits = []
    for run in runs:
        begin = bisect_left(run.by_value, printed.value - printed.edge, key=attrgetter("value"))
        for each in takewhile(lambda hit: hit.value <= printed.value + printed.edge, run.by_value[begin:]):
            hits.append((run, each))
    return sorted(hits, key=lambda hit: (not hit[0].is_last(hit[1]), -len(hit[1].printed)))


def _choose_common_label(
    hits_by_seed: dict[str, Hits], differing: Sequence[str], examined: ExaminedRecord
) -> str | None:
    labels = [
        {evaluation.label for _, evaluation in hits} for seed, hits in hits_by_seed.items() if seed not in differing
    ]
    if not labels:
        return None
    fault = "the printed values of the seeds are of different lines of their logs"
    shared = _share_labels(labels, examined, fault)
    if not shared:
        return None
    # The most exact of them.
    first = next(iter(hits_by_seed.values()))
    return next((evaluation.label for _, evaluation in first if evaluation.label in shared), min(shared))
