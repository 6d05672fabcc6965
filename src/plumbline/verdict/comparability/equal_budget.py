"""Checks that both arms had the same budget: time, steps, tokens, parameters and memory of a run.

Steps, tokens and parameters that are the same in all runs of each arm are exact: any difference is told. Everything
else has noise of its own: a difference is told where Student's t of the logarithms, two-sided at `LEVEL` with the
spread pooled over both arms, shows it, and the medians differ by a factor of `LEAST_RATIO` or more. Of one run of each
arm nothing tells the noise: there the factor has to be `LEAST_RATIO_ALONE`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from plumbline.core.formats import format_bytes, format_seconds
from plumbline.stats.distributions import t_sf
from plumbline.stats.pooling import pool_spreads
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import MEASURES
from plumbline.verdict.formatting import join_with_and, quote

#: Two-sided level of the test of one measure.
LEVEL = 0.01
#: A difference that is told has medians that differ by this factor at least; of one run of each arm, by the second.
LEAST_RATIO, LEAST_RATIO_ALONE = 1.1, 1.5
#: Measures that a trainer sets and no machine moves.
EXACT = ("step", "tokens", "parameters")
#: Measure -> the verb of its phrase, and what there is more or less of.
_PHRASES = {
    "seconds": ("took", "as long"),
    "step": ("made", "steps"),
    "tokens": ("read", "tokens"),
    "parameters": ("had", "parameters"),
    "memory_bytes": ("used", "memory"),
}


@dataclass(frozen=True, slots=True)
class MeasureComparison:
    """One measure in the runs of the candidate and of the baseline, each with a value.

    `lacking`: how many runs do not state it.
    """

    measure: str
    ours: Sequence[float]
    theirs: Sequence[float]
    lacking: int

    @property
    def ratio(self) -> float | None:
        """The candidate's median over the baseline's; None if it is not known of both."""
        return median(self.ours) / median(self.theirs) if self.ours and self.theirs else None

    @property
    def numbers(self) -> dict[str, float | None]:
        """The ratio by the measure's name, and the median of each arm; None for what is not known."""
        medians = {"candidate": self.ours, "baseline": self.theirs}
        of_arms = {f"{arm}_{self.measure}": median(side) if side else None for arm, side in medians.items()}
        return {self.measure: self.ratio, **of_arms}

    @property
    def differs(self) -> bool:
        """Whether the arms differ beyond their own noise."""
        if self.ratio is None:
            return False
        if self.measure in EXACT and len({*self.ours}) == len({*self.theirs}) == 1:
            return self.ratio != 1
        return _is_beyond_noise(self.ours, self.theirs)

    def describe(self) -> str:
        """Write the difference: ``took 2.4 times as long (24 s against 10 s)``."""
        assert self.ratio is not None
        verb, noun = _PHRASES[self.measure]
        amounts = " against ".join(format_amount(self.measure, median(side)) for side in (self.ours, self.theirs))
        excess = abs(self.ratio - 1)
        if excess >= LEAST_RATIO - 1:
            times = f"{self.ratio:.2g} times" if self.ratio < 99 else f"{self.ratio:,.0f} times"
            return f"{verb} {times} {noun if self.measure == 'seconds' else f'the {noun}'} ({amounts})"
        if self.measure == "seconds":
            return f"{verb} {100 * excess:.2g} % {'longer' if self.ratio > 1 else 'less time'} ({amounts})"
        fewer = "less" if self.measure == "memory_bytes" else "fewer"
        return f"{verb} {100 * excess:.2g} % {'more' if self.ratio > 1 else fewer} {noun} ({amounts})"


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell the measures in which the arms differ beyond their own noise, or refuse where they had to be equal."""
    comparisons = [compare_measure(arms, measure) for measure in MEASURES]
    numbers = {name: number for each in comparisons for name, number in each.numbers.items()}
    differing = [each for each in comparisons if each.differs]
    who = f"the runs of {quote(arms.label(arms.candidate))}, compared with those of {quote(arms.label(arms.baseline))},"
    difference = f"{who} {join_with_and([each.describe() for each in differing])}"
    required = [each for each in comparisons if each.measure in arms.equal]
    if unequal := [each for each in required if each.differs]:
        return refuse(
            f"{difference}, and {_name_measures(unequal)} had to be equal: give both arms the same, or take it out of "
            "`equal`",
            **numbers,
        )
    if unknown := [each for each in required if each.ratio is None or each.lacking]:
        return refuse(
            f"{_name_measures(unknown)} had to be equal, and is not known of every run: let each run state it, or "
            "take it out of `equal`",
            **numbers,
        )
    if differing:
        return tell(difference, **numbers)
    stated, lacking = ([each for each in comparisons if (each.ratio is None) == is_none] for is_none in (False, True))
    if not stated:
        return not_known(f"{_name_measures(comparisons)} of the runs", **numbers)
    tail = f"; {_name_measures(lacking)}: not known" if lacking else ""
    return holds(f"equal within their noise: {_name_measures(stated)}{tail}", **numbers)


def compare_measure(arms: ComparedArms, measure: str) -> MeasureComparison:
    """Collect what the runs of both arms that have a value state of a measure; what is not above 0 is not stated."""
    sides, lacking = dict[str, list[float]](), 0
    for arm in (arms.candidate, arms.baseline):
        stated = [getattr(run, measure) for run in arms.runs_of(arm) if run.value is not None]
        sides[arm] = [float(each) for each in stated if each is not None and math.isfinite(each) and each > 0]
        lacking += len(stated) - len(sides[arm])
    return MeasureComparison(measure, sides[arms.candidate], sides[arms.baseline], lacking)


def _is_beyond_noise(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    ratio = median(ours) / median(theirs)
    factor = max(ratio, 1 / ratio)
    logarithms = [[math.log(each) for each in side] for side in (ours, theirs)]
    freedom = len(ours) + len(theirs) - 2
    if not freedom:
        return factor >= LEAST_RATIO_ALONE
    if factor < LEAST_RATIO:
        return False
    sigma = pool_spreads(logarithms).sigma
    if not sigma:
        return True
    means = [math.fsum(side) / len(side) for side in logarithms]
    t = abs(means[0] - means[1]) / (sigma * math.sqrt(1 / len(ours) + 1 / len(theirs)))
    return 2 * float(t_sf(t, freedom)) <= LEVEL


def _name_measures(comparisons: Iterable[MeasureComparison]) -> str:
    return join_with_and([MEASURES[each.measure] for each in comparisons])


def format_amount(measure: str, amount: float) -> str:
    """Write what runs took by a measure, with its unit."""
    if measure == "seconds":
        return format_seconds(amount)
    return format_bytes(amount) if measure == "memory_bytes" else f"{amount:,.0f}"
