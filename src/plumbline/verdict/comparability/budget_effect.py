"""Checks that a budget had an effect: runs that were given more made more steps, or read more tokens, or took longer.

A flag that the trainer overrides, or a schedule whose end stands in a file, would have runs of one length compared as
if they were of several, and "holds" would be told of nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.evidence import MEASURES, RunEvidence

NAME = "budget has an effect"
#: Steps and tokens may be off their multiple by this share (a last evaluation, a start at 0) before that is told.
TOLERANCE = 0.1
#: Where neither is known, time has to grow by this share of what was asked for, since a start takes time as well.
LEAST_SHARE_OF_TIME = 0.25


def check(runs: Mapping[float, Sequence[RunEvidence]], labels: Sequence[str]) -> CheckAnswer:
    """Compare what runs took at the smallest and at the largest budget with what they were given.

    Args:
        runs: how many times 1x -> the runs of both arms there.
        labels: of the smallest and the largest budget.
    """
    first, last = min(runs), max(runs)
    factor, (small, large) = last / first, labels
    for measure in ("step", "tokens"):
        amounts = [_find_median(runs[times], measure) for times in (first, last)]
        if None in amounts or not amounts[0]:
            continue
        low, high = (float(amount or 0.0) for amount in amounts)
        ratio, name = high / low, MEASURES[measure]
        numbers: dict[str, float | str | None] = {"asked": factor, measure: ratio}
        text = f"{name} is {low:,.0f} at {small} and {high:,.0f} at {large}, {ratio:.3g} times for {factor:.3g}"
        if math.isclose(ratio, 1.0, rel_tol=0.01):
            return refuse(
                f"{text}: the budget has no effect. Name in run.budget what the command heeds, and all that a longer "
                "run needs (its schedule too)",
                **numbers,
            )
        return (holds if abs(ratio / factor - 1) <= TOLERANCE else tell)(text, **numbers)
    seconds = [_find_median(runs[times], "seconds") for times in (first, last)]
    if None in seconds or not seconds[0]:
        return not_known("what runs of each budget took")
    ratio = float(seconds[1] or 0.0) / float(seconds[0])
    text = f"runs print no steps and take {ratio:.3g} times as long at {large} as at {small}, for {factor:.3g}"
    grown = ratio - 1 >= LEAST_SHARE_OF_TIME * (factor - 1)
    return (holds if grown else tell)(text, asked=factor, seconds=ratio)


def _find_median(runs: Sequence[RunEvidence], measure: str) -> float | None:
    """The median over the runs with a value; None where one does not state it."""
    stated = [getattr(run, measure) for run in runs if run.value is not None]
    return None if not stated or None in stated else float(median(stated))
