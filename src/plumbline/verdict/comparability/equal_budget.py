"""Checks that both arms had the same budget: time, steps, tokens, parameters and memory of a run."""

from __future__ import annotations

from plumbline.verdict.comparability.check_answer import CheckAnswer, not_known
from plumbline.verdict.comparability.compared_arms import ComparedArms


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell the measures in which the arms differ beyond their own noise, or refuse where they had to be equal."""
    return not_known("what a run took")
