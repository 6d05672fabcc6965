"""Checks that what was evaluated is a whole model: every weight that it needs, and none beyond them."""

from __future__ import annotations

from plumbline.core.formats import format_count
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell runs whose model was not whole, or was of another size than the others of its arm.

    What reads a folder of weights refuses it where some are missing or unexpected, so that such a run has no value.
    """
    runs = {arm: [run for run in arms.runs_of(arm) if run.value is not None] for arm in (arms.baseline, arms.candidate)}
    every = [run for each in runs.values() for run in each]
    if not every or any(run.whole_model is None for run in every):
        return not_known("whether each model had all of its weights")
    problems = [f"of {arms.label(arm)}, {problem}" for arm, each in runs.items() for problem in _list_problems(each)]
    if problems:
        return tell("; ".join(problems))
    return holds("each run was evaluated with all weights that it trained, and those of an arm have one size")


def _list_problems(runs: list[RunEvidence]) -> list[str]:
    partial = [run for run in runs if not run.whole_model]
    problems = [f"{format_count(len(partial), 'run')} had no whole model"] if partial else []
    sizes = sorted({run.parameters for run in runs if run.parameters is not None})
    if len(sizes) > 1:
        problems.append(f"models have {sizes[0]:,.0f} to {sizes[-1]:,.0f} parameters")
    return problems
