"""Checks how the processes of the runs ended: a failure in an arm counts as its crash before this is asked."""

from __future__ import annotations

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.formatting import join_with_and


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell how runs ended that count all the same, each thing once with the seeds of its arm."""
    seeds: dict[tuple[str, str], list[str]] = {}
    ends_stated = 0
    for arm in (arms.baseline, arms.candidate):
        for run in arms.runs_of(arm):
            ends_stated += run.remarks is not None
            for remark in run.remarks or ():
                seeds.setdefault((arms.label(arm), remark), []).append(str(run.seed))
    if not ends_stated:
        return not_known("how the processes of the runs ended")
    if not seeds:
        return holds("every process of every run ended well")
    return tell(
        "; ".join(
            f"of {label}, seed{'s' * (len(each) > 1)} {join_with_and(each)}: {remark}"
            for (label, remark), each in seeds.items()
        )
    )
