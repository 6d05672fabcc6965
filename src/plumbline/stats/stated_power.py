"""Simulates how often a test that was stated beforehand sees a true gain.

One-sided, as `plumbline.specs.small_file` has them. Noise is normal, one sigma over arms; gains and sigma are in the
same units.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import bdtrc

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import noncentral_t_sf, t_isf

WORLDS, SEED = 20_000, 0


def simulate_t_test(gain: float, sigma: float, n: int, weights: tuple[float, ...], *, arms: int, level: float) -> float:
    """The share of worlds in which a one-sided t test sees a true gain above the minimum.

    Args:
        gain: what the true gain has above the minimum that must be exceeded.
        sigma: of one run; of a paired test, of a seed's own gain, and `weights` is then (1,) and `arms` 1.
        weights: of the arms in the contrast.
        arms: whose spread is pooled, each of n seeds.

    Raises:
        PlumblineError: no degrees of freedom, or a sigma that is not above 0.
    """
    if n < 2 or not sigma > 0:
        raise PlumblineError(f"a t test needs two seeds and a sigma above 0; got {n=}, {sigma=}")
    draws, df = np.random.default_rng(SEED), arms * (n - 1)
    error = sigma * math.sqrt(sum(weight**2 for weight in weights) / n)
    means = draws.normal(gain, error, WORLDS)
    spreads = np.sqrt(draws.chisquare(df, WORLDS) / df)
    return float(np.mean(means / (error * spreads) > float(t_isf(level, df))))


def find_least_gain(n: int, weights: tuple[float, ...], *, arms: int, level: float, power: float = 0.8) -> float:
    """The gain above the minimum, in sigmas, that the same test sees with the wished power, by noncentral t."""
    df = arms * (n - 1)
    critical, low, high = float(t_isf(level, df)), 0.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if noncentral_t_sf(critical, df, middle) >= power else (middle, high)
    return high * math.sqrt(sum(weight**2 for weight in weights) / n)


def compute_sign_power(chance: float, n: int, level: float) -> float:
    """The chance that a one-sided sign test over n seeds is significant if each has a gain with this chance."""
    least_wins = next((wins for wins in range(n + 1) if bdtrc(wins - 1, n, 0.5) <= level), None) if n else None
    return 0.0 if least_wins is None else float(bdtrc(least_wins - 1, n, chance))


def simulate_order_test(
    correlation: float, spread: float, sigma: float, n: tuple[int, int], *, methods: int, level: float
) -> float:
    """The share of worlds in which Kendall's tau between two orders of methods is above what chance gives.

    Args:
        correlation: of the methods' true gains in the two views.
        spread: standard deviation of true gains over methods.
        sigma: of one run.
        n: seeds of a method in each view.
    """
    taus = simulate_taus(correlation, spread, sigma, n, methods=methods)
    return float(np.mean(taus > _tau_limit(methods, level)))


@cache
def simulate_taus(correlation: float, spread: float, sigma: float, n: tuple[int, int], *, methods: int) -> np.ndarray:
    """Kendall's tau between two views of the same methods, in many worlds with this correlation; as
    `simulate_order_test`."""
    draws, worlds = np.random.default_rng(SEED), WORLDS // 10
    first, noise = draws.normal(size=(2, worlds, methods))
    second = correlation * first + math.sqrt(1 - correlation**2) * noise
    views = [
        spread * true + sigma / math.sqrt(seeds) * draws.normal(size=true.shape)
        for true, seeds in zip((first, second), n, strict=True)
    ]
    return _tau(*views)


@cache
def _tau_limit(methods: int, level: float) -> float:
    first, second = np.random.default_rng(SEED + 1).normal(size=(2, WORLDS, methods))
    return float(np.quantile(_tau(first, second), 1 - level))


def _tau(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    rows, columns = np.triu_indices(first.shape[1], 1)
    agree = np.sign(first[:, rows] - first[:, columns]) * np.sign(second[:, rows] - second[:, columns])
    means: np.ndarray = agree.mean(axis=1)
    return means
