"""Checks that the runs of each arm ended at one step; that the arms ended at different ones is the budget's."""

from __future__ import annotations

from plumbline.core.formats import format_count
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import quote


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell where runs of one arm end at different steps, or before the step at which they were to end.

    A run without a value was lost, which is an outcome of its arm.
    """
    sentences, ends, lacking = list[str](), dict[str, float](), 0
    for arm in (arms.candidate, arms.baseline):
        runs = [run for run in arms.runs_of(arm) if run.value is not None]
        steps = sorted({run.step for run in runs if run.step is not None})
        lacking += sum(run.step is None for run in runs)
        if len(steps) > 1:
            sentences.append(f"runs of {quote(arms.label(arm))} end at steps {steps[0]:,g} to {steps[-1]:,g}")
        elif steps:
            ends[arms.label(arm)] = steps[0]
        short = [run for run in runs if run.step is not None and run.planned is not None and run.step < run.planned]
        if short:
            what = format_count(len(short), "run")
            sentences.append(
                f"{what} of {quote(arms.label(arm))} stopped before the planned end, at step {short[0].step:,g} of "
                f"{short[0].planned:,}"
            )
    if sentences:
        return tell("; ".join(sentences))
    if not ends:
        return not_known("at which step or epoch a run ended")
    where = " and ".join(f"{quote(label)} at {step:,g}" for label, step in ends.items())
    rest = f"; of {format_count(lacking, 'run')} it is not known" if lacking else ""
    return holds(f"the runs of each arm end at one step: {where}{rest}")
