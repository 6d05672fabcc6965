"""Tests the fresh runs of a candidate that a stopping rule kept: the runs that made it look good overstate its gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

#: Fresh runs confirm a keep where they beat fresh runs of the baseline at this one-sided level: seldom by luck alone
#: after a keep; five of each arm lose 1 % of what the looks keep of 2 sigma (benchmarks/experiment_rules.md).
FRESH_LEVEL = 0.25


def p_of_fresh_runs(baseline_WB: np.ndarray, fresh_WN: np.ndarray) -> np.ndarray:
    """One-sided p of Student's t in each of W worlds, more being better: of N fresh runs against B of the baseline."""
    (_, bank), (_, runs) = baseline_WB.shape, fresh_WN.shape
    df = bank + runs - 2
    variance_W = ((bank - 1) * baseline_WB.var(axis=1, ddof=1) + (runs - 1) * fresh_WN.var(axis=1, ddof=1)) / df
    t_W = (fresh_WN.mean(axis=1) - baseline_WB.mean(axis=1)) / np.sqrt(variance_W * (1 / bank + 1 / runs))
    return np.asarray(special.stdtr(df, -t_W))


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """By how much the mean of one arm is above another's, by Student's t with one spread for both.

    Attributes:
        least: the gain that is to be exceeded.
    """

    gain: float
    error: float
    df: int
    least: float = 0.0

    @property
    def p(self) -> float:
        """One-sided p of no more gain than `least`; without any spread the sign decides."""
        beyond = self.gain - self.least
        if not self.error:
            return 0.5 if not beyond else float(beyond < 0)
        return float(special.stdtr(self.df, -beyond / self.error))

    def interval(self, level: float) -> tuple[float, float]:
        """The interval of the gain at a level."""
        margin = self.error * float(special.stdtrit(self.df, (1 + level) / 2))
        return self.gain - margin, self.gain + margin


def compare_means(
    baseline: Sequence[float], candidate: Sequence[float], *, higher: bool, least: float = 0.0
) -> MeanDifference:
    """Compare the fresh runs of two arms, two or more of each; a gain counts upwards, whichever way the metric does."""
    (bank, base), (runs, candidate_values) = ((len(arm), np.asarray(arm, dtype=float)) for arm in (baseline, candidate))
    df = bank + runs - 2
    squares = float(((base - base.mean()) ** 2).sum() + ((candidate_values - candidate_values.mean()) ** 2).sum())
    gain = float(candidate_values.mean() - base.mean()) * (1 if higher else -1)
    return MeanDifference(gain, math.sqrt(squares / df * (1 / bank + 1 / runs)), df, least)
