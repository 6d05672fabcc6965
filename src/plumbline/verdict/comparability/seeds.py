"""Checks that the seed has an effect: runs of one arm with different seeds print different values.

First values: two runs whose first five printed values are equal, as printed, with ten digits or more in the different
ones of them, are one run. Last values: two metrics may agree by chance where they have few digits. The number of equal
ones that chance gives is bounded by the unit of the last digit and the spread of both arms; fewer than `CHANCE` of them
expected, and runs are taken for one. A metric of 0, 1 or 100 may be at the end of its scale, and is passed over.

Runs that differ by less than `ROUNDING` of their value may differ by the order of sums alone: that their seed has an
effect is then not taken from their values; where a seed was run twice, that says more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from plumbline.stats.pooling import pool_spreads
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.sources.bounded_reading import count_places

#: First printed values that are compared, and the least digits of the different ones among them.
FIRST, DIGITS = 5, 10
#: The expected number of groups of equal values, by chance, below which they are none of chance.
CHANCE = 1e-3
#: Shares of so many items at most are taken for shares, whose unit is one item.
MOST_ITEMS = 100_000
#: Values at which a metric may have reached the end of its scale.
_ENDS = (0.0, 1.0, 100.0)
#: The standard deviation of runs, as a share of the largest, that sums in another order give by themselves.
ROUNDING = 1e-5
#: Runs that a refusal names.
MOST_NAMED = 6
#: Seed, or another name of a run -> the run.
Runs = Mapping[str, RunEvidence]


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse a comparison where runs of an arm with different seeds are one run, by what they print."""
    sides = {arm: _list_finished(arms, arm) for arm in (arms.baseline, arms.candidate)}
    for arm, runs in sides.items():
        if copies := _find_same_beginning(runs):
            values = ", ".join((next(iter(copies.values())).printed_first or ())[:FIRST])
            return _refuse_copies(arms.label(arm), copies, f"begin with the same values, {values}")
        if copies := _find_same_values(runs, sides.values()):
            return _refuse_copies(arms.label(arm), copies, f"all gave {next(iter(copies.values())).value:.10g}")
    if max(map(len, sides.values())) < 2:
        return not_known("whether the seed has an effect, since no arm has two runs")
    if rounded := _find_rounding(sides):
        label, share = rounded
        return tell(
            f"runs of different seeds of {quote(arms.label(label))} differ by {share:.1g} of their value, as sums in "
            "another order may make two runs of one seed differ: nothing shows that the seed has an effect; run one "
            "seed twice"
        )
    return holds("no runs of different seeds are taken for one run")


def _list_finished(arms: ComparedArms, arm: str) -> Runs:
    return {name: run for name, run in arms.evidence.runs.get(arm, {}).items() if run.value is not None}


def _find_rounding(sides: Mapping[str, Runs]) -> tuple[str, float] | None:
    """An arm of three runs whose standard deviation, as a share of their size, is no more than rounding gives; of two
    arms of two runs, both together. None where none is so, or a seed was run twice, which says more.
    """
    if any(run.rerun_value is not None for runs in sides.values() for run in runs.values()):
        return None
    values = {
        arm: [run.value for run in _drop_equal_seeds(runs).values() if run.value is not None]
        for arm, runs in sides.items()
    }
    scale = max((abs(value) for side in values.values() for value in side), default=0.0)
    for arm, groups in [*((arm, [side]) for arm, side in values.items()), (next(iter(values)), [*values.values()])]:
        sigma = _estimate_sigma(groups)
        # Equal values are none of rounding: they are asked about above.
        if sum(max(0, len(side) - 1) for side in groups) > 1 and 0 < sigma <= ROUNDING * scale:
            return arm, sigma / scale
    return None


def _refuse_copies(label: str, copies: Runs, finding: str) -> CheckAnswer:
    names = list(copies)
    listing = join_with_and(names) if len(names) <= MOST_NAMED else f"{', '.join(names[:MOST_NAMED])} and others"
    return refuse(
        f"the seed has no effect: runs {listing} of {quote(label)} {finding}; count copies of one run once, or let the "
        "trainer use its seed"
    )


def _find_same_beginning(runs: Runs) -> Runs:
    """Runs that begin with the same values, though no two are said to have one seed; none if there are none."""
    by_beginning: dict[tuple[str, ...], dict[str, RunEvidence]] = {}
    for name, run in runs.items():
        beginning = (run.printed_first or ())[:FIRST]
        digits = sum(len("".join(filter(str.isdigit, value)).lstrip("0")) for value in {*beginning})
        if len({*beginning}) > 1 and digits >= DIGITS:
            by_beginning.setdefault(beginning, {})[name] = run
    return next((_drop_equal_seeds(group) for group in by_beginning.values() if len(_drop_equal_seeds(group)) > 1), {})


def _drop_equal_seeds(runs: Runs) -> dict[str, RunEvidence]:
    """One run of each seed; runs whose seed is not known have different ones."""
    return dict({run.seed or name: (name, run) for name, run in runs.items()}.values())


def _find_same_values(runs: Runs, sides: Iterable[Runs]) -> Runs:
    """Runs of one value of which chance would not give so many; none if it may."""
    counts = Counter(run.value for run in _drop_equal_seeds(runs).values())
    if not counts or max(counts.values()) < 2:
        return {}
    values = [[run.value for run in side.values() if run.value is not None] for side in sides]
    sigma = _estimate_sigma(values)
    # The chance of the value that is most likely, if values are normal.
    share = find_unit([value for side in values for value in side]) / (math.sqrt(2 * math.pi) * sigma) if sigma else 1.0
    for value, number in counts.items():
        if number < 2 or value in _ENDS:
            continue
        ways = math.lgamma(len(runs) + 1) - math.lgamma(number + 1) - math.lgamma(len(runs) - number + 1)
        chance = (number - 1) * math.log(min(1.0, max(share, 1e-300))) - math.log(number) / 2
        if ways + chance < math.log(CHANCE):
            return {name: run for name, run in runs.items() if run.value == value}
    return {}


def _estimate_sigma(sides: Iterable[Sequence[float]]) -> float:
    groups = [side for side in sides if len(side) > 1]
    scale = max((abs(value) for side in groups for value in side), default=0.0) or 1.0
    return scale * pool_spreads([[value / scale for value in side] for side in groups]).sigma if groups else 0.0


def find_unit(values: Iterable[float]) -> float:
    """Find the unit that values are multiples of: one of the last printed digit, or a share of so many items."""
    return min(map(_find_unit_of, values), default=1.0)


@lru_cache(maxsize=100_000)  # a baseline's values are asked about for each method of a table
def _find_unit_of(value: float) -> float:
    share = Fraction(value).limit_denominator(MOST_ITEMS)
    is_share = abs(float(share) - value) <= 1e-12 * abs(value)
    return 1 / share.denominator if is_share else 10.0 ** -count_places(repr(value))
