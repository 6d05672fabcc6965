"""Judges a method by printed means and standard deviations: the tests of `judge`, from what is left of the runs.

The pooled t, the one-sample t and Welch's need the mean, the standard deviation and the number of runs, and nothing
else. Printed digits are rounded: `compute_rounded_p` returns the values between which p lies, whatever was cut off.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparison_terms import LARGEST, SMALLEST, ComparisonTerms
from plumbline.verdict.evidence import RunsSummary, pool_summaries
from plumbline.verdict.judge import BaselineComparison, build_comparison, choose_outcome
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.power import upper_tail


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundedP:
    """What the one-sided p may be.

    Attributes:
        low, high: over everything that would be printed with the same digits.
        others: verdicts, other than the one on the printed digits, that some of it would have.
        divided_by_n: where the printed standard deviations have n below the line, and not n - 1.
    """

    low: float
    high: float
    others: tuple[Outcome, ...]
    divided_by_n: float


def judge_summaries(
    name: str, method: RunsSummary, baseline: RunsSummary | float, terms: ComparisonTerms, *, tries: int = 1
) -> BaselineComparison:
    """Judge one method by what is printed of its runs, against the baseline's or a fixed value.

    Raises:
        CannotBeJudgedError: all standard deviations are 0.
        PlumblineError: pairs are requested, which only single runs have; or a number is too large to be squared.
    """
    if terms.paired:
        raise PlumblineError(
            f"--paired: {name!r} has a mean and a standard deviation, and pairs need the value of each run; leave out "
            "--paired"
        )
    sides = (method,) if isinstance(baseline, float) else (method, baseline)
    for side in sides:
        if max(abs(side.mean), side.std) > LARGEST:
            raise PlumblineError(f"{name!r} beside {side.mean:g}: too large to compare; rescale the metric")
    if terms.sigma is not None:
        sigma, freedom = terms.sigma, terms.sigma_freedom
    else:
        sigma, freedom = pool_summaries(*sides)
        if sigma <= SMALLEST:
            raise CannotBeJudgedError(
                f"{name!r}: the printed standard deviations are 0, so there is no noise floor; give more digits, or "
                "--sigma from other runs"
            )
    theirs = baseline if isinstance(baseline, float) else baseline.mean
    return build_comparison(
        name,
        {},
        {},
        terms,
        tries,
        (method.n, 0 if isinstance(baseline, float) else baseline.n),
        (method.mean, theirs),
        terms.sign * (method.mean - theirs),
        sigma,
        freedom,
        math.sqrt(sum(1 / side.n for side in sides)),
        summaries=sides,
    )


def compute_rounded_p(comparison: BaselineComparison) -> RoundedP | None:
    """Find what p may be where it is from printed digits; None if it is from the runs themselves."""
    if not comparison.summaries:
        return None
    off = sum(side.mean_rounding for side in comparison.summaries)
    gains = (comparison.gain - off, comparison.gain + off)
    if comparison.terms.sigma is None:
        ends = [
            pool_summaries(*sides)[0] for sides in zip(*(side.ends() for side in comparison.summaries), strict=True)
        ]
        wider = pool_summaries(*(side.divide_by_n() for side in comparison.summaries))[0]
    else:
        ends, wider = [comparison.sigma], comparison.sigma
    # p falls with the gain and, on either side of the required gain, is monotone in sigma; the distance of the upper
    # bound from the gain that is in question is linear in both. So the ends of both are at corners.
    corners = list(itertools.product(gains, ends))
    ps = [_compute_p(comparison, gain, sigma) for gain, sigma in corners]
    outcomes = {_choose_outcome(comparison, gain, sigma) for gain, sigma in corners} - {comparison.outcome}
    return RoundedP(
        low=min(ps),
        high=max(ps),
        others=tuple(sorted(outcomes)),
        divided_by_n=_compute_p(comparison, comparison.gain, wider),
    )


def _choose_outcome(comparison: BaselineComparison, gain: float, sigma: float) -> Outcome:
    high = gain + comparison.design.critical * sigma * comparison.design.error
    return choose_outcome(
        min(1.0, comparison.tries * _compute_p(comparison, gain, sigma)), high, sigma, comparison.terms
    )


def _compute_p(comparison: BaselineComparison, gain: float, sigma: float) -> float:
    excess = gain - comparison.terms.minimum_gain
    if not sigma > 0:
        return 0.5 if excess == 0 else float(excess < 0)
    return upper_tail(excess / (sigma * comparison.design.error), comparison.freedom)
