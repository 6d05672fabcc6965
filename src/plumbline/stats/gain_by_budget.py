"""Estimates how a gain changes with the budget of a run: at each budget, its slope over the doublings, one beyond.

At budget b, which is 2 to the power x_b times the first one, n runs of each arm give two means, whose difference is the
gain g_b. Everything that is told is a sum of these with fixed weights, sum of w_b g_b: its variance is the sum of
w_b^2 s^2 / n over both arms of every budget, s^2 being the variance of that arm's own runs there, since neither arms
nor budgets need to spread alike. Its degrees of freedom are those of Satterthwaite (Biometrics Bulletin 1946) and Welch
(Biometrika 1947): variance^2 over the sum of (w_b^2 s^2 / n)^2 / (n - 1).

The slope is that of ordinary least squares, w_b = (x_b - mean x) / sum of (x - mean x)^2, which no spread enters.
Weights by the estimated variances would be smaller where luck made a budget look noisy: with five runs of each arm they
show a slope of 0 to fall in .054 to .061 of tests at .05, and fixed ones in .046 to .051
(benchmarks/gain_by_budget.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError
from plumbline.stats.sample_spread import require_finite


@dataclass(frozen=True, kw_only=True, slots=True)
class WelchEstimate:
    """A gain, or a sum of gains with weights, with its standard error and degrees of freedom."""

    value: float
    error: float
    df: float

    def p_above(self, threshold: float = 0.0) -> float:
        """One-sided p of being no more than a threshold: small where the estimate shows more."""
        return float(special.stdtr(self.df, -(self.value - threshold) / self.error))

    def p_below(self, threshold: float = 0.0) -> float:
        """One-sided p of being no less than a threshold."""
        return float(special.stdtr(self.df, (self.value - threshold) / self.error))

    def interval(self, level: float) -> tuple[float, float]:
        """Two-sided confidence interval."""
        reach = float(special.stdtrit(self.df, (1 + level) / 2)) * self.error
        return self.value - reach, self.value + reach


class GainCourse(StrEnum):
    """How a gain goes on with the budget."""

    HOLDS = "holds"
    SHRINKS = "shrinks"
    TURNS = "turns"
    NOT_DECIDED = "not decided"


@dataclass(frozen=True, kw_only=True, slots=True)
class GainByBudget:
    """The gain at each budget, in the metric's units and upwards when better, and how it changes.

    Attributes:
        doublings: log2 of each budget over the first named one, rising.
        gains: at each budget.
        slope: its change with each doubling of the budget.
        beyond: at twice the largest budget, if it went on from there by the slope.
    """

    doublings: tuple[float, ...]
    gains: tuple[WelchEstimate, ...]
    slope: WelchEstimate
    beyond: WelchEstimate

    def find_course(self, alpha: float, minimum_gain: float = 0.0) -> GainCourse:
        """Say in a word how the gain goes on; each word but "not decided" is wrong with a chance of `alpha` at most.

        *turns*: a gain at the smallest budget is shown, and a loss at the largest. *holds*: more than the minimum gain
        is shown both at the largest budget and at twice that by the slope. *shrinks*: a gain at the smallest budget is
        shown, and a slope below 0. Each part is a one-sided test at `alpha`; a word needs both of its parts, so that
        it is wrong no more often than the part that is false is shown.
        """
        smallest, largest = self.gains[0], self.gains[-1]
        is_gain_at_first = smallest.p_above() <= alpha
        if is_gain_at_first and largest.p_below() <= alpha:
            return GainCourse.TURNS
        if max(largest.p_above(minimum_gain), self.beyond.p_above(minimum_gain)) <= alpha:
            return GainCourse.HOLDS
        return GainCourse.SHRINKS if is_gain_at_first and self.slope.p_below() <= alpha else GainCourse.NOT_DECIDED


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """Mean, variance (n - 1 below the line) and number of an arm's runs at one budget."""

    mean: float
    variance: float
    n: int


def measure_gains(runs: Mapping[float, tuple[Sequence[float], Sequence[float]]], *, higher: bool) -> GainByBudget:
    """Estimate the gain at each budget and its slope from the values of the runs.

    Args:
        runs: doublings of the budget -> values of the baseline, values of the candidate.
        higher: whether higher values are better.

    Raises:
        PlumblineError: fewer than two budgets or two runs of an arm, a value that is not a finite number, or arms whose
            runs all have one value.
    """
    arms = {
        doubling: [
            _summarize(f"{name} at budget 2^{doubling:g}", values)
            for name, values in zip(("the baseline", "the candidate"), pair)
        ]
        for doubling, pair in runs.items()
    }
    return combine_gains({doubling: (pair[0], pair[1]) for doubling, pair in arms.items()}, higher=higher)


def combine_gains(arms: Mapping[float, tuple[ArmSummary, ArmSummary]], *, higher: bool) -> GainByBudget:
    """Estimate the gain at each budget and its slope from the summaries of baseline and candidate.

    Raises:
        PlumblineError: there are fewer than two budgets, or the runs have no spread.
    """
    if len(arms) < 2:
        raise PlumblineError(f"a slope needs two budgets; there is {len(arms)}")
    doublings, sign = sorted(arms), 1 if higher else -1
    gains = [sign * (arms[at][1].mean - arms[at][0].mean) for at in doublings]
    pairs = [arms[at] for at in doublings]

    def estimate(weights: np.ndarray) -> WelchEstimate:
        parts = [
            (weight**2 * side.variance / side.n, side.n - 1)
            for weight, pair in zip(weights.tolist(), pairs)
            for side in pair
        ]
        variance = math.fsum(part for part, _ in parts)
        if not variance > 0:
            raise PlumblineError("the runs of a budget all have one value, so that nothing tells their noise")
        scaled = math.fsum((part / variance) ** 2 / df for part, df in parts)
        value = math.fsum(weight * gain for weight, gain in zip(weights.tolist(), gains))
        return WelchEstimate(value=value, error=math.sqrt(variance), df=1 / scaled)

    slope = weigh_slope(doublings)
    places = np.eye(len(doublings))
    return GainByBudget(
        doublings=tuple(doublings),
        gains=tuple(estimate(place) for place in places),
        slope=estimate(slope),
        beyond=estimate(places[-1] + slope),
    )


def weigh_slope(doublings: Sequence[float]) -> np.ndarray:
    """Compute the weights by which gains add up to their slope of least squares."""
    centred = np.asarray(doublings, dtype=float) - np.mean(doublings)
    return np.asarray(centred / (centred @ centred))


def _summarize(name: str, values: Sequence[float]) -> ArmSummary:
    runs = require_finite(name, values)
    if len(runs) < 2:
        raise PlumblineError(f"{name}: a spread needs two runs; there is {len(runs)}")
    return ArmSummary(float(runs.mean()), float(runs.var(ddof=1)), len(runs))
