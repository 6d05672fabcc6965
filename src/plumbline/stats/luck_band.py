"""Computes what luck alone gives a series of tries: how far the best of their means lies from the baseline's if none
of them does anything, when each is run until its rule stops it.

Runs of a try that looks bad end early, and one that is kept is run again, so that the law of its mean is no normal's
with the number of runs that it happened to have. It is drawn: in each of many worlds every try goes through its own
looks beside one drawn mean of the baseline, whose error all of them share, and the best mean so far is kept. Sigma
counts as known: it is pooled over all arms. The worlds are the same at each call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

#: Quantiles of the best mean so far between which the band lies.
LOW, HIGH = 0.05, 0.95
WORLDS = 20_000


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When the runs of a try end.

    Attributes:
        keep, discard: T at each look from which it is kept, or up to which it is discarded; NaN where a look cannot.
        fresh: runs with fresh seeds that a keep is followed by, and whose mean counts then.
        minimum_gain: the gain that T is over, in sigma.
    """

    keep: tuple[float, ...]
    discard: tuple[float, ...]
    fresh: int = 0
    minimum_gain: float = 0.0

    @classmethod
    def of_runs(cls, count: int) -> StoppingRule:
        """The rule that makes so many runs, whatever they are."""
        return cls((math.nan,) * count, (math.nan,) * count)


def draw_bands(rules: Sequence[StoppingRule], bank: int) -> Iterator[tuple[float, float]]:
    """Give, after each try, the quantiles `LOW` and `HIGH` of the best mean so far, in sigma better than the
    baseline's.

    Args:
        rules: of each try.
        bank: runs of the baseline.
    """
    rng = np.random.default_rng(0)
    baseline_W = rng.standard_normal(WORLDS) / math.sqrt(bank)
    best_W = np.full(WORLDS, -np.inf)
    for rule in rules:
        np.maximum(best_W, _draw_mean(rule, baseline_W, bank, rng) - baseline_W, out=best_W)
        low, high = np.quantile(best_W, (LOW, HIGH))
        yield float(low), float(high)


def _draw_mean(rule: StoppingRule, baseline_W: np.ndarray, bank: int, rng: np.random.Generator) -> np.ndarray:
    """The mean that counts of a try that does nothing, in each world."""
    mean_W = np.empty_like(baseline_W)
    # Only worlds in which the try still runs are drawn on: most end at their first looks.
    running_R, sum_R, past_runs = np.arange(len(baseline_W)), np.zeros_like(baseline_W), 0
    for runs, (keep, discard) in enumerate(zip(rule.keep, rule.discard), start=1):
        is_last = runs == len(rule.keep)
        if math.isnan(keep) and math.isnan(discard) and not is_last:
            continue
        sum_R += rng.standard_normal(len(running_R)) * math.sqrt(runs - past_runs)
        past_runs, mean_R = runs, sum_R / runs
        t_R = (mean_R - baseline_W[running_R] - rule.minimum_gain) / math.sqrt(1 / runs + 1 / bank)
        is_kept_R = t_R >= keep
        if rule.fresh:
            mean_R[is_kept_R] = rng.standard_normal(np.count_nonzero(is_kept_R)) / math.sqrt(rule.fresh)
        ends_R = is_kept_R | (t_R <= discard) | is_last
        mean_W[running_R[ends_R]] = mean_R[ends_R]
        running_R, sum_R = running_R[~ends_R], sum_R[~ends_R]
    return mean_W
