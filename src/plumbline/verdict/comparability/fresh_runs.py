"""Checks that fresh runs of what was kept agree with the runs that made it look good."""

from __future__ import annotations

from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms


def check(arms: ComparedArms) -> CheckAnswer:
    """State whether fresh runs confirmed a keep; the verdict is undecided already where they did not."""
    if arms.confirmed is None:
        return not_known("no fresh runs were made")
    if arms.confirmed:
        return holds(f"its fresh runs beat the baseline's fresh ones at {FRESH_LEVEL:g}, one-sided")
    return tell(f"its fresh runs do not beat the baseline's fresh ones at {FRESH_LEVEL:g}, one-sided")
