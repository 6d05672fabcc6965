"""Examines at which step a record's values are: at the runs' end, or at one that was chosen after looking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from plumbline.core.formats import format_count
from plumbline.verdict.gate.examined_records import STOP, ExaminedRecord
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.sources.bounded_reading import count_decimals
from plumbline.verdict.sources.training_log import Evaluation, LoggedRun

#: Decimals in which two evaluations are not alike by chance.
EXACT = 6


def examine_stop(examined: ExaminedRecord, rules: Rules) -> None:
    """Say at which step the values of a record's runs are, and whether it could have been chosen among several."""
    step, runs = examined.record.step, examined.values
    if step is None or not runs or any(run.planned is None for run in runs):
        _examine_stop_without_plan(examined, rules)
        return
    if all(run.planned == step for run in runs):
        examined.stop = f"step {step:,} is where every run was to end"
        return
    common = set.intersection(*({*(run.steps or ())} - {0} for run in runs))
    examined.looks = _count_close_steps(sorted(common), step)
    examined.stop = (
        f"step {step:,} of {_format_span({run.planned or 0 for run in runs})} planned; one of {examined.looks} that "
        "were evaluated more closely than the steps before"
    )
    if rules.stopping.chosen == "refused":
        examined.blame(STOP, examined.stop)


def _examine_stop_without_plan(examined: ExaminedRecord, rules: Rules) -> None:
    """Whether the values are of the runs' ends, of one step before them, or of a step of each run's own."""
    hits = [(run, _find_source(run, each)) for run, each in examined.chosen]
    steps = {each.step for _, each in hits}
    runs_before_end = [run for run, each in hits if each.step is not None and each.step < run.last_step]
    early = [run for run, each in hits if not run.is_last(each)] or (runs_before_end if len(steps) > 1 else [])
    stated_steps = {each.step for _, each in hits if each.step}
    places = {_find_place(run, each) for run, each in hits}
    if early and not stated_steps and len(places) == 1 and (place := max(places))[1]:
        number, examined.looks = place
        examined.stop = (
            f"line {number} of the {examined.looks} of its kind, which state no step, in every run: one of "
            f"{examined.looks} that could have been chosen"
        )
    elif not early:
        where = "the last line of its kind" if runs_before_end else "by the runs' end"
        ends = {each.step or run.last_step for run, each in hits} - {0}
        examined.stop = f"{where}, {_format_span(ends)}" if ends else "no step is claimed"
    elif len(steps) > 1 or not stated_steps:
        where = f"steps of their own, {_format_span(stated_steps)}" if stated_steps else "no step that a line states"
        examined.stop = (
            f"{len(early)} of {format_count(len(hits), 'value')} stand before the end of the run, at {where}: state "
            "the values of the runs' ends, or, where the rules allow it, of one step"
        )
        examined.blame(STOP, examined.stop)
    else:
        (step,) = stated_steps
        labels = {each.label for _, each in hits}
        common = set.intersection(
            *({each.step or 0 for each in run.evaluations if each.label in labels} - {0} for run, _ in hits)
        )
        # Where the step is the score, an earlier one than the claimed would have been claimed.
        examined.looks = len(common) if examined.record.step is None else _count_close_steps(sorted(common), step)
        examined.stop = (
            f"step {step:,}, before the runs' end at {_format_span({run.last_step for run in early})}; one of "
            f"{examined.looks} that could have been chosen"
        )
        if rules.stopping.chosen == "refused":
            examined.blame(STOP, examined.stop)


def _find_place(run: LoggedRun, evaluation: Evaluation) -> tuple[int, int]:
    """Which of so many lines of its kind an evaluation without a step is, all of them behind the run's last step; zeros
    where it is none of such.
    """
    steps = [at for at, each in enumerate(run.evaluations) if each.step is not None]
    behind = [each for each in run.evaluations[max(steps, default=-1) + 1 :] if each.label == evaluation.label]
    stepless_lines = [each for each in run.evaluations if each.label == evaluation.label and each.step is None]
    return (behind.index(evaluation) + 1, len(behind)) if steps and evaluation in behind == stepless_lines else (0, 0)


def _find_source(run: LoggedRun, evaluation: Evaluation) -> Evaluation:
    """The evaluation of which a value is: an earlier one, where a line without a step repeats its many digits."""
    if evaluation.step is None and count_decimals(evaluation.printed) >= EXACT:
        for each in run.evaluations:
            if each.printed == evaluation.printed and not run.is_last(each):
                return each
    return evaluation


def _count_close_steps(steps: Sequence[int], claimed: int) -> int:
    """How many evaluated steps there were to choose from: those closer together than the run's usual distance, and
    those from the claimed one on.
    """
    distances = [later_step - earlier_step for earlier_step, later_step in pairwise(steps)]
    if not distances:
        return 1
    usual = max(Counter(distances), key=lambda each: (Counter(distances)[each], each))
    first = distances.index(usual)
    close = {later_step for distance, later_step in zip(distances[first:], steps[first + 1 :]) if distance < usual}
    return max(1, len(close | {step for step in steps if step >= claimed}))


def _format_span(steps: set[int]) -> str:
    return f"{min(steps):,}" if len(steps) == 1 else f"{min(steps):,} to {max(steps):,}"
