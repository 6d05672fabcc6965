"""Simulates searches in which no change does anything: what selection alone gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

#: Searches that are simulated.
WORLDS = 20_000


@dataclass(frozen=True, slots=True)
class NullSearches:
    """Simulated searches in which no change does anything, in units of the true sigma, upwards better.

    Shapes: W searches, S steps (0 is the start).
    """

    total_W: np.ndarray
    jump_W: np.ndarray
    sigma_W: np.ndarray
    mean_S: np.ndarray
    high_S: np.ndarray

    def p_total(self, seen: float) -> float:
        """Compute the share of simulated searches whose total gain, in units of their own sigma, is at least the `seen`
        one.
        """
        return _share(self.total_W / self.sigma_W, seen)

    def p_face(self, seen: float) -> float:
        """Compute the share of simulated searches whose total gain, in units of the true sigma, is at least the `seen`
        one.
        """
        return _share(self.total_W, seen)

    def p_jump(self, seen: float) -> float:
        """Compute the share of simulated searches with a kept step at least `seen` above the best before it (own
        sigma).
        """
        return _share(self.jump_W / self.sigma_W, seen)


@lru_cache(maxsize=32)
def null_searches(
    steps: int,
    start_runs: int,
    elsewhere: float,
    *,
    known: float | None = None,
    threshold: float = 0.0,
) -> NullSearches:
    """Simulate searches over noise alone.

    Args:
        steps: changes that were run.
        start_runs: how often the start was run; the first of them is what the first change has to beat.
        elsewhere: degrees of freedom of sigma from repeats of other commits.
        known: degrees of freedom of a sigma that was given, used instead of all repeats; infinite if it is exact.
        threshold: what a change has to be better by, in units of sigma.
    """
    rng = np.random.default_rng([0, steps, start_runs])
    start_WR = rng.standard_normal((WORLDS, start_runs))
    level_W, best_W, jump_W = start_WR.mean(axis=1), start_WR[:, 0].copy(), np.zeros(WORLDS)
    path = [best_W - level_W]
    means, highs = [path[0].mean()], [np.quantile(path[0], 0.95)]
    for _ in range(steps):
        step_W = rng.standard_normal(WORLDS) - best_W
        kept_W = np.where(step_W > threshold, step_W, 0.0)
        best_W = best_W + kept_W
        jump_W = np.maximum(jump_W, kept_W)
        gain_W = best_W - level_W
        means.append(gain_W.mean())
        highs.append(np.quantile(gain_W, 0.95))
    if known is None:
        squares_W = ((start_WR - level_W[:, None]) ** 2).sum(axis=1)
        squares_W = squares_W + (rng.chisquare(elsewhere, WORLDS) if elsewhere else 0.0)
        sigma_W = np.sqrt(squares_W / (start_runs - 1 + elsewhere))
    else:
        sigma_W = np.ones(WORLDS) if math.isinf(known) else np.sqrt(rng.chisquare(known, WORLDS) / known)
    return NullSearches(best_W - level_W, jump_W, sigma_W, np.array(means), np.array(highs))


def _share(values_W: np.ndarray, seen: float) -> float:
    """One more on both sides than was drawn, so that it is never 0 and never promises too much."""
    return float((np.count_nonzero(values_W >= seen) + 1) / (len(values_W) + 1))
