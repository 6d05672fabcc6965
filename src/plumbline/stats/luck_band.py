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
        asked: the gain that T is over, in sigma.
    """

    keep: tuple[float, ...]
    discard: tuple[float, ...]
    fresh: int = 0
    asked: float = 0.0

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
    most = len(rule.keep)
    looks_K = np.arange(1, most + 1)
    means_WK = rng.standard_normal((len(baseline_W), most)).cumsum(axis=1) / looks_K
    t_WK = (means_WK - baseline_W[:, None] - rule.asked) / np.sqrt(1 / looks_K + 1 / bank)
    kept_WK, ended_WK = t_WK >= np.asarray(rule.keep), t_WK <= np.asarray(rule.discard)
    ended_WK |= kept_WK
    ended_WK[:, -1] = True
    last_W = ended_WK.argmax(axis=1)
    worlds = np.arange(len(baseline_W))
    mean_W = means_WK[worlds, last_W]
    if rule.fresh:
        fresh_W = rng.standard_normal(len(baseline_W)) / math.sqrt(rule.fresh)
        mean_W = np.where(kept_WK[worlds, last_W], fresh_W, mean_W)
    return mean_W
