"""Tests whether values follow the order in which they were made: a trend within the arms of a comparison.

Kendall's rank correlation with the order, summed over the arms (the seasonal Kendall test of Hirsch and Slack, Water
Resources Research 1984): only runs of one arm are compared with each other, so that neither a gain of an arm nor how
wide it spreads is taken for a trend. Its p is exact for any law of noise, as long as runs are alike and independent.

Shapes: W worlds, N runs of an arm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError

#: Error of all tries against one baseline together, and over how many tries its first half is spent.
SESSION_ERROR, HALF_SPENT = 0.03, 5
#: The level where fresh runs of both arms are there. What does nothing gets so far in 1 of 20 tries at most: over 40 of
#: them that spends 0.02, and with `SESSION_ERROR` 0.05.
FRESH_LEVEL = 0.01
#: Up to this many runs of an arm the law of the statistic is exact; beyond, normal.
EXACT_UP_TO = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderTrend:
    """How values follow the order in which they were made.

    Attributes:
        correlation: Kendall's, over the pairs of runs of one arm: 1 where every later value is larger, -1 where every
            later one is smaller.
        runs: of all arms.
        p: chance that values follow the order so closely, up or down, where nothing does.
    """

    correlation: float
    runs: int
    p: float


def measure_trend(arms: Sequence[Sequence[float]]) -> OrderTrend:
    """Test whether values of each arm, in the order in which they were made, rise or fall.

    Equal values count for no trend, which makes p too large and never too small.

    Raises:
        PlumblineError: no arm has two values, or one is not a finite number.
    """
    values = [np.asarray(arm, dtype=float) for arm in arms if len(arm) > 1]
    if not values:
        raise PlumblineError("a trend needs two runs of one arm")
    if not all(np.isfinite(arm).all() for arm in values):
        raise PlumblineError("a trend needs values that are finite numbers")
    rises = sum(int(count_rises(arm[None, :])[0]) for arm in values)
    sizes = tuple(len(arm) for arm in values)
    pairs = sum(size * (size - 1) // 2 for size in sizes)
    return OrderTrend(correlation=rises / pairs, runs=sum(map(len, arms)), p=p_of_rises(rises, sizes))


def count_rises(values_WN: np.ndarray) -> np.ndarray:
    """Count, in each world, the pairs of which the later value is larger less those of which it is smaller; a NaN is
    no run.
    """
    runs = values_WN.shape[1]
    rises_W = np.zeros(len(values_WN), dtype=int)
    for place in range(1, runs):
        differences = np.nan_to_num(values_WN[:, place, None] - values_WN[:, :place])
        rises_W += np.sign(differences).astype(int).sum(axis=1)
    return rises_W


def p_of_rises(rises: int, sizes: tuple[int, ...]) -> float:
    """Two-sided p of a sum of `count_rises` over arms of these sizes."""
    if max(sizes) <= EXACT_UP_TO:
        return float(tail_of_rises(tuple(sorted(sizes)))[abs(rises)])
    variance = sum(size * (size - 1) * (2 * size + 5) / 18 for size in sizes)
    return min(1.0, 2 * float(special.ndtr(-max(0, abs(rises) - 1) / math.sqrt(variance))))


@lru_cache(maxsize=512)
def tail_of_rises(sizes: tuple[int, ...]) -> np.ndarray:
    """Compute the chance that the sum of `count_rises` is as far from 0 as each number of pairs, or farther.

    The number of inversions of a random order of n is a sum of independent uniform numbers below 1, 2, .. n.
    """
    law = np.ones(1)
    for size in sizes:
        for choices in range(2, size + 1):
            law = np.convolve(law, np.full(choices, 1 / choices))
    pairs = len(law) - 1
    distance = np.abs(pairs - 2 * np.arange(pairs + 1))
    chance = np.bincount(distance, weights=law, minlength=pairs + 1)
    return np.minimum(1.0, chance[::-1].cumsum()[::-1])


def spend_level(tries: int, *, fresh: bool = False) -> float:
    """Compute the level of the test in the try of this number (from 1), so that all tries spend `SESSION_ERROR`.

    `fresh`: of a candidate that was kept and has fresh runs, for which `FRESH_LEVEL` is there.

    Level k is SESSION_ERROR times h / ((h + k - 1) (h + k)), h being `HALF_SPENT`: the sum over the first n tries is
    SESSION_ERROR n / (n + h). It holds however tries depend on each other, and they share the baseline's runs.
    """
    spent = SESSION_ERROR * HALF_SPENT / ((HALF_SPENT + tries - 1) * (HALF_SPENT + tries))
    return max(spent, FRESH_LEVEL) if fresh else spent
