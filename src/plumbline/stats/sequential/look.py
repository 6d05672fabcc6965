"""Computes the test statistic of the finished runs: Student's t of the candidate's gain beyond the least one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import f_sf, t_isf
from plumbline.stats.sample_spread import require_finite, sample_deviation
from plumbline.stats.sequential.design import Plan, information
from plumbline.stats.welch_and_stouffer import welch_of_summaries


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """The test statistic after the candidate's k-th run: one interim analysis.

    Attributes:
        k: candidate runs (in pairs: pairs).
        t: (gain - minimum_gain) / (allowance x sigma / sqrt(information)).
        df: degrees of freedom of sigma.
        sigma: spread of one run, pooled over both arms, in the metric's units (in pairs: of one difference).
        gain: difference of the means, positive where the candidate is better, in the metric's units.
        information: 1 / (1/m + 1/k) for m baseline runs; k in pairs.
        minimum_gain: the gain that does not count.
        allowance: how many times larger the standard error is taken for a candidate that spreads more widely.
    """

    k: int
    t: float
    df: float
    sigma: float
    gain: float
    information: float
    minimum_gain: float = 0.0
    allowance: float = 1.0

    @property
    def standard_error(self) -> float:
        """That of the gain, in the metric's units."""
        return self.allowance * self.sigma / math.sqrt(self.information)


def statistic(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    higher: bool,
    minimum_gain: float = 0.0,
    plan: Plan = "bank",
    allow_wider: bool = False,
) -> Look:
    """Compute the test statistic of a candidate's runs and the baseline's.

    Args:
        baseline: values of the baseline; in pairs the value at place i has the seed of the candidate's at place i.
        candidate: values of the candidate, in the order of the runs.
        higher: whether more is better.
        minimum_gain: the gain that does not count, in the metric's units.
        plan: `paired` tests the differences.
        allow_wider: as `SequentialDesign` has it.

    Raises:
        PlumblineError: a value that is not a finite number, an arm without runs, unequal numbers of runs in pairs, or
            no spread.
    """
    base, candidate_values = require_finite("the baseline", baseline), require_finite("the candidate", candidate)
    if not math.isfinite(minimum_gain):
        raise PlumblineError(f"minimum_gain = {minimum_gain}: must be a finite number")
    if plan == "paired" and len(base) != len(candidate_values):
        raise PlumblineError(f"pairs need as many runs of both arms; got {len(base)} and {len(candidate_values)}")
    groups = [base - candidate_values] if plan == "paired" else [base, candidate_values]
    scale = float(np.abs(np.concatenate([base, candidate_values])).max())
    df = float(sum(len(group) - 1 for group in groups))
    if df <= 0:
        raise PlumblineError("one run of each arm: there is nothing to take the spread from")
    # In units of the largest value, so that squares of values such as 1e200 stay finite.
    squares = sum(float((((group / scale) - (group / scale).mean()) ** 2).sum()) for group in groups) if scale else 0.0
    spread = math.sqrt(squares / df)
    if spread < 1e-14:  # what rounding leaves where all values are one
        if plan == "paired" and len(set(base.tolist())) > 1:
            raise PlumblineError("the arms differ by the same at every seed, or by nothing, so that there is no spread")
        raise PlumblineError("all runs of an arm have one value, whatever their seed: does the seed reach the trainer?")
    sign = 1.0 if higher else -1.0
    gain = sign * (float((candidate_values / scale).mean()) - float((base / scale).mean()))
    arm_information = information(len(base), len(candidate_values), plan)
    t = (gain - minimum_gain / scale) / spread * math.sqrt(arm_information)
    student = t
    if allow_wider and plan != "paired" and t > 0:
        t = min(t, _find_welch_t(base / scale, candidate_values / scale, gain - minimum_gain / scale))
    return Look(
        k=len(candidate_values),
        t=t,
        df=df,
        sigma=spread * scale,
        gain=gain * scale,
        information=arm_information,
        minimum_gain=minimum_gain,
        allowance=student / t if t < student else 1.0,
    )


def _find_welch_t(base: np.ndarray, candidate: np.ndarray, excess: float) -> float:
    """The t of Student's test that has the p of Welch's; infinite where the candidate does not spread more widely."""
    if min(len(base), len(candidate)) < 2:
        return math.inf
    sigma, base_sigma = sample_deviation(candidate), sample_deviation(base)
    if not sigma or (base_sigma and f_sf((sigma / base_sigma) ** 2, len(candidate) - 1, len(base) - 1) >= 0.5):
        return math.inf
    p = welch_of_summaries(excess, (sigma, len(candidate)), (base_sigma, len(base))).p_greater
    return float(t_isf(p, len(candidate) + len(base) - 2))
