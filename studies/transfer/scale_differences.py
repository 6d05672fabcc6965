"""Computes each method's difference from the baseline at one scale from all seeds of both, with its interval.

Source: ours; the paper compares single runs with three seeds of the baseline (section 3.3). The spread of seeds is that
of all methods' seeds about their own means (one-way analysis of variance), so that a method with one seed borrows it;
with seeds of the baseline alone this is the prediction t of Table 2.

A method of which a seed diverged is not judged by the seeds that are left: they are those that went well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from plumbline.core.run_files import DIVERGED
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study
from plumbline.stats.distributions import t_isf
from plumbline.stats.noise_floor import two_sided_t
from plumbline.stats.sample_spread import sample_deviation

from .signal_metrics import SignalMetric

#: The level after Bonferroni from which a difference counts as resolved, and half that of an interval.
LEVEL, HALF = 0.05, 0.025


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleDifferences:
    """Differences from the reference by one metric at one scale, each on the method.

    Attributes:
        means: over all seeds; NaN if a method has none that finished, or one that diverged.
        delta: mean minus the reference's.
        error: standard error of `delta`, from `sigma`.
        spread: standard deviation of a method's own seeds; NaN below two.
        seeds: how many have a value.
        diverged: how many diverged.
        p: two-sided, t with `freedom` degrees.
        p_bonferroni: `p` times the study's comparisons, at most 1.
        sigma: the pooled spread of seeds; NaN if no method has two, or none of them differ.
        runs: keys of the runs behind a method.
    """

    means: pd.Series
    delta: pd.Series
    error: pd.Series
    spread: pd.Series
    seeds: pd.Series
    diverged: pd.Series
    p: pd.Series
    p_bonferroni: pd.Series
    sigma: float
    freedom: int
    runs: dict[str, tuple[str, ...]]

    @property
    def half_interval(self) -> pd.Series:
        """Half the width of the 95 % interval of each difference, one comparison at a time."""
        return self.error * (t_isf(HALF, self.freedom) if self.freedom > 0 else math.nan)

    def is_resolved(self) -> pd.Series:
        """Whether each difference is significant after Bonferroni; False where it is not known."""
        return self.p_bonferroni <= LEVEL

    def pairs_apart(self, methods: list[str]) -> np.ndarray:
        """Pairs of methods whose difference is significant at the level, one pair at a time: methods x methods."""
        mean, n = self.means[methods].to_numpy(), self.seeds[methods].to_numpy(dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):  # without seeds, or without a spread, nothing is told
            error = self.sigma * np.sqrt(1 / n[:, None] + 1 / n[None, :])
            return two_sided_t((mean[:, None] - mean[None, :]) / error, self.freedom) <= LEVEL


def scale_differences(
    frames: RunFrames, study: Study, reference: str, scale: str, metric: SignalMetric
) -> ScaleDifferences:
    """Compare all methods that ran at a scale with the reference there."""
    runs = frames.select(scale, study.methods)
    of_runs = metric.read_values(frames, runs)
    methods = [method for method in study.methods if (runs["method"] == method).any()]
    behind = {method: tuple(runs.index[runs["method"] == method]) for method in methods}
    diverged = pd.Series(
        {method: int((runs["outcome"][list(keys)] == DIVERGED).sum()) for method, keys in behind.items()}, dtype=int
    )
    own = {method: of_runs[list(keys)].dropna().astype(float) for method, keys in behind.items()}
    seeds = pd.Series({method: len(values) for method, values in own.items()}, dtype=int)
    whole = {method: values for method, values in own.items() if not diverged[method]}
    means = pd.Series(
        {method: whole[method].mean() if method in whole else math.nan for method in methods}, dtype=float
    )
    repeated = [values for values in whole.values() if len(values) > 1]
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in repeated)
    # Seeds that are all equal have no spread that a difference could be measured by.
    freedom = sum(len(values) - 1 for values in repeated) if any(map(sample_deviation, repeated)) else 0
    sigma = math.sqrt(squares / freedom) if freedom else math.nan
    of_reference = int(seeds.get(reference, 0))
    delta = means - means.get(reference, math.nan)
    counts = seeds.where(seeds > 0).astype(float)
    error = sigma * np.sqrt(1 / counts + (1 / of_reference if of_reference else math.nan))
    p = pd.Series(two_sided_t(delta / error, freedom) if freedom else math.nan, index=means.index, dtype=float)
    p[p.index == reference] = math.nan
    return ScaleDifferences(
        means=means,
        delta=delta,
        error=error,
        spread=pd.Series({method: sample_deviation(values) for method, values in own.items()}, dtype=float),
        seeds=seeds,
        diverged=diverged,
        p=p,
        p_bonferroni=(p * study.m).clip(upper=1.0),
        sigma=sigma,
        freedom=freedom,
        runs=behind,
    )
