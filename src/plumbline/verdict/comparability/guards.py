"""Checks guards: measures and further metrics that may not get worse than their limits, whatever a change gains.

Of a measure the ratio of the arms' medians is compared with the limit, of a metric the difference of their means. Where
the interval of the runs' own noise at `LEVEL` (Student's t, the spread pooled over both arms, of a measure that of the
logarithms) reaches across the limit, it is told that they are not known apart; what is beyond the limit is broken all
the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from plumbline.core.formats import format_percent
from plumbline.stats.distributions import t_isf
from plumbline.stats.pooling import pool_spreads
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import MEASURES, RunEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.guard_limit import GuardLimit, read_guards

#: Of the two-sided interval.
LEVEL = 0.9
#: The name of the check on pages and in JSON, where there are guards.
NAME = "guards"


@dataclass(frozen=True, slots=True)
class GuardedAmounts:
    """What the runs of the candidate and of the baseline that have a value state of what a guard is about.

    `lacking`: how many runs do not state it.
    """

    guard: GuardLimit
    ours: Sequence[float]
    theirs: Sequence[float]
    lacking: int

    @property
    def name(self) -> str:
        """What is guarded, as a reader knows it."""
        return MEASURES[self.guard.name] if self.guard.is_ratio else quote(self.guard.name)

    @property
    def amount(self) -> float:
        """What the limit is compared with."""
        if self.guard.is_ratio:
            return median(self.ours) / median(self.theirs)
        return fmean(self.ours) - fmean(self.theirs)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The amount with the runs' own noise; None of one run of each arm, which tells none."""
        if not (freedom := len(self.ours) + len(self.theirs) - 2):
            return None
        sides = [self.ours, self.theirs]
        if self.guard.is_ratio:
            sides = [[math.log(each) for each in side] for side in sides]
        spread = pool_spreads(sides).sigma * math.sqrt(1 / len(self.ours) + 1 / len(self.theirs))
        half = float(t_isf((1 - LEVEL) / 2, freedom)) * spread
        if self.guard.is_ratio:
            return self.amount * math.exp(-half), self.amount * math.exp(half)
        return self.amount - half, self.amount + half

    @property
    def is_broken(self) -> bool:
        """Whether the amount is beyond the limit."""
        return not self.guard.allows(self.amount)

    @property
    def is_near(self) -> bool:
        """Whether the runs do not tell the amount from the limit."""
        return self.interval is None or len({self.guard.allows(end) for end in self.interval}) > 1

    def describe(self) -> str:
        """State the amount and the limit: ``peak memory is 1.4 times the baseline's, and at most 1.05 times is
        allowed``.
        """
        is_plural = self.guard.is_ratio and self.name.endswith("s")
        amount = f"{self._format(self.amount)} times" if self.guard.is_ratio else self._describe_difference()
        comparison = f"{amount} the baseline's" if self.guard.is_ratio else amount
        text = f"{self.name} {'are' if is_plural else 'is'} {comparison}, and {self.guard.describe()}"
        if not self.is_near:
            return text
        if self.interval is None:
            return f"{text} (of one run of each arm nothing tells the noise)"
        low, high = map(self._format, self.interval)
        return f"{text} (not known apart from that: {format_percent(LEVEL)} interval {low} to {high})"

    def _describe_difference(self) -> str:
        if not self.amount:
            return "that of the baseline"
        direction = "higher" if self.amount > 0 else "lower"
        return f"{self._format(abs(self.amount))} {direction} than the baseline's"

    def _format(self, amount: float) -> str:
        """Write an amount with so many digits that it is not taken for the limit."""
        texts = (f"{amount:.{digits}g}" for digits in range(3, 10))
        limits = (self.guard.amount, abs(self.guard.amount))
        return next((text for text in texts if float(text) not in limits or amount in limits), f"{amount:.3g}")


def check(arms: ComparedArms) -> CheckAnswer:
    """State what guards hold, tell those that are broken or near, or refuse where a run does not state one."""
    every = _list_amounts(arms)
    if reason := explain_unknown(every):
        return refuse(reason)
    numbers = {each.guard.name: each.amount for each in every}
    telling = [each for each in every if each.is_broken or each.is_near]
    label = quote(arms.label(arms.candidate))
    if not telling:
        return holds(f"of {label} {join_with_and([each.describe() for each in every])}", **numbers)
    parts = [f"{each.describe()}: {'broken' if each.is_broken else 'held'}" for each in telling]
    return tell(f"guards: of {label} {'; '.join(parts)}", **numbers)


def describe_broken(arms: ComparedArms) -> str:
    """State which guards are broken, as the end of a sentence on the candidate; empty if none is."""
    every = _list_amounts(arms)
    if explain_unknown(every):
        return ""
    return join_with_and([f"its {each.describe()}" for each in every if each.is_broken])


def explain_unknown(every: Sequence[GuardedAmounts]) -> str:
    """State what guarded measures and metrics are not known of every run, with the remedy; empty if all are."""
    unknown = [each for each in every if each.lacking or not (each.ours and each.theirs)]
    if not unknown:
        return ""
    return (
        f"{join_with_and([each.name for each in unknown])} {'is' if len(unknown) == 1 else 'are'} guarded, and not "
        "known of every run: let each run state it, or take it out of [guard]"
    )


def explain_unstated(guards: Mapping[str, str], runs: Sequence[RunEvidence]) -> str:
    """State which guarded measures and metrics these runs of a baseline do not state, with the remedy; empty if they
    state all, or none of them has a value.
    """
    every = []
    for guard in read_guards(guards) if any(run.value is not None for run in runs) else ():
        amounts, lacking = _collect(guard, runs)
        every.append(GuardedAmounts(guard, amounts, amounts, lacking))
    reason = explain_unknown(every)
    return f"{reason}; runs from before they stated it: plumbline setup-trainer --again" if reason else ""


def _list_amounts(arms: ComparedArms) -> list[GuardedAmounts]:
    every = []
    for guard in read_guards(arms.guards):
        (ours, lacking), (theirs, also) = (
            _collect(guard, arms.runs_of(arm)) for arm in (arms.candidate, arms.baseline)
        )
        every.append(GuardedAmounts(guard, ours, theirs, lacking + also))
    return every


def _collect(guard: GuardLimit, runs: Sequence[RunEvidence]) -> tuple[list[float], int]:
    """What the runs with a value state, and how many state nothing; a measure that is not above 0 is not stated."""
    with_value = [run for run in runs if run.value is not None]
    if guard.is_ratio:
        amounts = [getattr(run, guard.name) for run in with_value]
    else:
        amounts = [(run.others or {}).get(guard.name) for run in with_value]
    stated = [
        float(each) for each in amounts if each is not None and math.isfinite(each) and (each > 0 or not guard.is_ratio)
    ]
    return stated, len(amounts) - len(stated)
