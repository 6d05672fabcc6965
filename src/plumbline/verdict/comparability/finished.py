"""Checks that the runs of each arm ended at one step; that the arms ended at different ones is the budget's."""

from __future__ import annotations

from plumbline.core.formats import format_count
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import quote


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell where runs of one arm end at different steps, or before the step at which they were to end.

    A run without a value was lost, which is an outcome of its arm.
    """
    sentences, ends, lacking = list[str](), dict[str, float](), 0
    for arm in (arms.candidate, arms.baseline):
        label, runs = quote(arms.label(arm)), [run for run in arms.runs_of(arm) if run.value is not None]
        stated = [(end, run) for run in runs if (end := _find_end(run)) is not None]
        steps = sorted({end for end, _ in stated})
        lacking += len(runs) - len(stated)
        if len(steps) > 1:
            sentences.append(f"runs of {label} end at steps {steps[0]:,g} to {steps[-1]:,g}")
        elif steps:
            ends[label] = steps[0]
        stops = [(end, run.planned) for end, run in stated if run.planned is not None and end < run.planned]
        if stops:
            runs_text = format_count(len(stops), "run")
            sentences.append(f"{runs_text} of {label} stopped at step {stops[0][0]:,g} of {stops[0][1]:,} planned ones")
    if sentences:
        return tell("; ".join(sentences))
    if not ends:
        return not_known("at which step or epoch a run ended")
    where = " and ".join(f"{label} at {step:,g}" for label, step in ends.items())
    tail = f"; of {format_count(lacking, 'run')} it is not known" if lacking else ""
    return holds(f"the runs of each arm end at one step: {where}{tail}")


def _find_end(run: RunEvidence) -> float | None:
    """The last step of a run, where its value may be of an earlier one."""
    return max(run.steps) if run.steps else run.step
