"""Tests what was stated of small models before their runs: one-sided, each with the bounds of the gain at its level.

A test without spread is the limit of those with little: it goes by the gain alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import bound_share, t_isf, t_sf
from plumbline.stats.sample_spread import sample_deviation
from plumbline.stats.stated_power import simulate_taus

SEEN, REVERSED, NOT_SEEN, NOT_DECIDED = "seen", "reversed", "not seen", "not decided"
#: Correlations at which the bounds of an order are looked for.
_STEPS = 41


@dataclass(frozen=True, kw_only=True, slots=True)
class TestedGain:
    """A gain with its test.

    Attributes:
        gain: of means; of a sign test, the share of seeds that have one; of orders, Kendall's tau.
        low, high: one-sided bounds at the level of the test: of the gain; of a sign test, of the chance that a seed has
            one; of orders, of the correlation of true gains.
        sigma, df: of a run, pooled over arms, or of a seed's own gain, and its degrees of freedom; NaN and 0 of
            signs and orders.
        p, p_reversed: of the gain being above the minimum, and below it.
    """

    gain: float
    low: float
    high: float
    p: float
    p_reversed: float
    sigma: float = math.nan
    df: int = 0

    def decide(self, target: float, level: float) -> str:
        """The first that holds: seen, reversed, not seen (the target lies above the bound), or not decided."""
        if self.p <= level:
            return SEEN
        if self.p_reversed <= level:
            return REVERSED
        return NOT_SEEN if self.high < target else NOT_DECIDED


def join_verdicts(verdicts: Sequence[str]) -> str:
    """The verdict of a statement with several contrasts: seen if all are, else by one that speaks against it."""
    for word in (REVERSED, NOT_SEEN, NOT_DECIDED):
        if word in verdicts:
            return word
    return SEEN


def compare_pairs(gains: Sequence[float], minimum: float, level: float) -> TestedGain:
    """Test the seeds' own gains by t.

    Raises:
        PlumblineError: fewer than two seeds.
    """
    _require_two(len(gains))
    sigma = sample_deviation(np.asarray(gains, dtype=float), subtracted=max(map(abs, gains)))
    return _test_by_t(float(np.mean(gains)), sigma, sigma / math.sqrt(len(gains)), len(gains) - 1, minimum, level)


def compare_weighted_means(
    samples: Mapping[str, Sequence[float]], weights: Mapping[str, float], minimum: float, level: float
) -> TestedGain:
    """Test a weighted sum of the means of arms by t, with the spread of all `samples` pooled.

    Raises:
        PlumblineError: an arm has fewer than two seeds.
    """
    for values in samples.values():
        _require_two(len(values))
    df = sum(len(values) - 1 for values in samples.values())
    deviations = [
        sample_deviation(np.asarray(values, dtype=float), subtracted=max(map(abs, values)))
        for values in samples.values()
    ]
    squares = [(len(values) - 1) * deviation**2 for values, deviation in zip(samples.values(), deviations, strict=True)]
    sigma = math.sqrt(sum(squares) / df)
    gain = sum(weight * float(np.mean(samples[arm])) for arm, weight in weights.items())
    error = sigma * math.sqrt(sum(weight**2 / len(samples[arm]) for arm, weight in weights.items()))
    return _test_by_t(gain, sigma, error, df, minimum, level)


def count_signs(gains: Sequence[float], minimum: float, level: float, unknown: int = 0) -> TestedGain:
    """Test how many seeds have a gain above the minimum; an equal one is neither above nor below.

    Args:
        unknown: how many of the equal ones may be gains that could not be measured; `high` counts them as such.
    """
    n = len(gains)
    _require_two(n)
    wins, losses = sum(gain > minimum for gain in gains), sum(gain < minimum for gain in gains)
    low, high = bound_share(wins, n, level)[0], bound_share(wins + unknown, n, level)[1]
    return TestedGain(gain=wins / n, low=low, high=high, p=_sign_p(wins, n), p_reversed=_sign_p(losses, n))


def compare_orders(
    first: Sequence[float], second: Sequence[float], level: float, *, spread: float, sigma: float, n: tuple[int, int]
) -> TestedGain:
    """Test Kendall's tau between two views of the same methods by all permutations; equal gains have no order.

    Args:
        spread: standard deviation of true gains over methods; `sigma`: of one run; `n`: seeds of a method in each view.
            The bounds of the correlation go by them.
    """
    methods = len(first)
    rows, columns = np.triu_indices(methods, 1)
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    signs = np.sign(a[rows] - a[columns]) * np.sign(b[rows] - b[columns])
    tau, pairs = float(signs.mean()), len(rows)
    chances = _inversion_chances(methods)
    concordant, discordant = int((signs > 0).sum()), int((signs < 0).sum())
    correlations = np.linspace(-1, 1, _STEPS)
    taus = [simulate_taus(each, spread, sigma, n, methods=methods) for each in correlations]
    possible_low = [c for c, draws in zip(correlations, taus, strict=True) if np.mean(draws >= tau - 1e-12) > level]
    possible_high = [c for c, draws in zip(correlations, taus, strict=True) if np.mean(draws <= tau + 1e-12) > level]
    return TestedGain(
        gain=tau,
        low=float(min(possible_low, default=1.0)),
        high=float(max(possible_high, default=-1.0)),
        p=float(chances[: pairs - concordant + 1].sum()),
        p_reversed=float(chances[: pairs - discordant + 1].sum()),
        sigma=sigma,
    )


def _test_by_t(gain: float, sigma: float, error: float, df: int, minimum: float, level: float) -> TestedGain:
    above = 0.0 if math.isclose(gain, minimum, rel_tol=1e-12, abs_tol=1e-12) else gain - minimum
    if error == 0:
        p, p_reversed = float(above <= 0), float(above >= 0)
    else:
        p, p_reversed = float(t_sf(above / error, df)), float(t_sf(-above / error, df))
    half = float(t_isf(level, df)) * error
    return TestedGain(gain=gain, low=gain - half, high=gain + half, p=p, p_reversed=p_reversed, sigma=sigma, df=df)


def _sign_p(wins: int, n: int) -> float:
    """The chance of so many wins or more, if each is as likely as not."""
    return float(bdtrc(wins - 1, n, 0.5)) if wins else 1.0


def _inversion_chances(n: int) -> np.ndarray:
    """The chance of each number of inversions in a random order of n things."""
    chances = np.ones(1)
    for size in range(2, n + 1):
        chances = np.convolve(chances, np.full(size, 1 / size))
    return chances


def _require_two(n: int) -> None:
    if n < 2:
        raise PlumblineError(f"a test needs two seeds; there are {n}")
