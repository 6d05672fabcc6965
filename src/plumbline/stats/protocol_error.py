"""Simulates how often the noise-floor protocol crowns a method when none has an effect, and how often it finds a gain.

Source: transfer study, section 3.3, whose protocol is taken as it is: one run of each of m methods against n runs of a
reference, a distance in units of the reference's spread, a correction over the m. Nothing is trained: all runs are
drawn from one normal distribution, whose spread no method changes.

Shapes: W worlds (simulated studies), M methods, N runs of the reference. Distances are in units of the true spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import t_isf
from plumbline.stats.multiplicity import Correction
from plumbline.stats.noise_floor import two_sided_normal, two_sided_t

#: The paper's statistic, which takes mean and spread as known, and the one that pays for their being estimates.
Statistic = Literal["normal", "prediction"]

#: Worlds that are drawn, and the level that a corrected p is held to.
WORLDS, ALPHA = 20_000, 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorRates:
    """Shares of the simulated worlds in which the protocol called a method different or better.

    Attributes:
        survivor: no method has an effect, and at least one is called different.
        improver: no method has an effect, and at least one is called better.
        power: gain -> one method has it, the others have no effect, and that method is called better.
    """

    survivor: float
    improver: float
    power: dict[float, float]


def standard_error(share: float, worlds: int = WORLDS) -> float:
    """Standard error of a share that was counted in so many simulated worlds."""
    return math.sqrt(share * (1 - share) / worlds)


@cache
def simulate_protocol(
    statistic: Statistic,
    correction: Correction,
    *,
    m: int,
    n: int,
    gains: tuple[float, ...] = (),
    worlds: int = WORLDS,
    alpha: float = ALPHA,
    seed: int = 0,
) -> ErrorRates:
    """Simulate a protocol with m methods and n runs of the reference, and count in how many worlds it calls a method.

    The simulated worlds are the same for every statistic, correction and gain.

    Args:
        statistic: "normal" treats the reference's mean and spread as known; "prediction" is `NoiseFloor.prediction`.
        gains: true gains for `ErrorRates.power`, in units of the spread.

    Raises:
        PlumblineError: no method, fewer than two runs of the reference, no world, alpha outside (0, 1).
    """
    if m < 1 or n < 2 or worlds < 1 or not 0 < alpha < 1:
        raise PlumblineError(
            f"need m >= 1, n >= 2, worlds >= 1 and alpha in (0, 1); got {m=}, {n=}, {worlds=}, {alpha=}"
        )
    reference_WN, methods_WM = draw_studies(m, n, worlds, seed)
    mean_W1 = reference_WN.mean(axis=1, keepdims=True)
    spread_W1 = reference_WN.std(axis=1, ddof=1, keepdims=True)

    def p_of(values: np.ndarray) -> np.ndarray:
        z = (values - mean_W1) / spread_W1
        return two_sided_normal(z) if statistic == "normal" else two_sided_t(z / math.sqrt(1 + 1 / n), n - 1)

    p_WM, up_WM = p_of(methods_WM), methods_WM > mean_W1
    rejected_WM = mark_rejected(p_WM, correction, alpha)
    detected = {}
    for gain in gains:
        gained_W1 = methods_WM[:, :1] + gain
        with_gain_WM = np.concatenate([p_of(gained_W1), p_WM[:, 1:]], axis=1)
        crowned_W = mark_rejected(with_gain_WM, correction, alpha)[:, 0] & (gained_W1 > mean_W1)[:, 0]
        detected[gain] = float(crowned_W.mean())
    return ErrorRates(
        survivor=float(rejected_WM.any(axis=1).mean()),
        improver=float((rejected_WM & up_WM).any(axis=1).mean()),
        power=detected,
    )


def simulate_pooled_test(
    spreads: Sequence[float],
    seeds: Sequence[int],
    *,
    m: int,
    worlds: int = WORLDS,
    alpha: float = ALPHA,
    seed: int = 0,
) -> float:
    """Simulate the test of all seeds where no method has an effect: in what share of worlds one is called different.

    The test pools the spread of all methods about their own means, as if they spread alike, under Bonferroni over m.

    Args:
        spreads: the true spread of the reference's seeds, then of each method's.
        seeds: how many each has.

    Raises:
        PlumblineError: no method apart from the reference, one without a seed, or none with two.
    """
    freedom = sum(seeds) - len(seeds)
    if len(seeds) < 2 or min(seeds) < 1 or freedom < 1:
        raise PlumblineError(f"need a reference, a method, and two seeds of one of them; got seeds {list(seeds)}")
    rng = np.random.default_rng([seed, m, *seeds])
    means, squares_W = [], np.zeros(worlds)
    for spread, n in zip(spreads, seeds, strict=True):
        values_WN = spread * rng.standard_normal((worlds, n))
        means.append(values_WN.mean(axis=1))
        squares_W += n * values_WN.var(axis=1)
    critical_W = t_isf(alpha / m / 2, freedom) * np.sqrt(squares_W / freedom)
    called_W = np.zeros(worlds, dtype=bool)
    for mean_W, n in zip(means[1:], seeds[1:], strict=True):
        called_W |= np.abs(mean_W - means[0]) > critical_W * math.sqrt(1 / n + 1 / seeds[0])
    return float(called_W.mean())


def mark_rejected(p_WM: np.ndarray, correction: Correction, alpha: float = ALPHA) -> np.ndarray:
    """Mark the tests of each world for which `plumbline.stats.multiplicity.adjust` gives at most alpha.

    Args:
        p_WM: p-values (worlds, methods).
    """
    m = p_WM.shape[1]
    if correction == "bonferroni":
        return p_WM <= alpha / m
    ranks_M = np.arange(1, m + 1)
    ordered_WM = np.sort(p_WM, axis=1)
    if correction == "holm":  # down from the smallest, until the first that fails
        count_W1 = np.cumprod(ordered_WM <= alpha / (m + 1 - ranks_M), axis=1).sum(axis=1, keepdims=True)
    else:  # up from the largest, to the first that holds
        holds_WM = ordered_WM <= alpha * ranks_M / m
        count_W1 = (holds_WM * ranks_M).max(axis=1, keepdims=True)
    last_W1 = np.take_along_axis(ordered_WM, np.maximum(count_W1, 1) - 1, axis=1)
    return (p_WM <= last_W1) & (count_W1 > 0)


@cache
def draw_studies(m: int, n: int, worlds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the results of `worlds` studies in which nothing works: of `n` reference runs each, and of `m` methods."""
    rng = np.random.default_rng([seed, m, n])
    return rng.standard_normal((worlds, n)), rng.standard_normal((worlds, m))


def list_protocols(counts: Iterable[int]) -> list[tuple[int, Statistic, Correction]]:
    """Every combination of number of reference runs, statistic and correction; for each n the paper's own first."""
    return [
        (n, statistic, correction)
        for n in counts
        for statistic in ("normal", "prediction")
        for correction in ("bonferroni", "holm", "bh")
    ]
