"""Computes bootstrap intervals over seeds, and warns where so few seeds make them too narrow.

Source: transfer study, section 3.3 (N = 10,000 resamples, random state 0).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plumbline.core.errors import PlumblineError

#: Below this many values the resamples are so few that the interval's coverage is far from its name.
FEW = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class BootstrapInterval:
    """A bootstrap interval; `low` and `high` are NaN where the method is undefined for these values."""

    low: float
    high: float
    confidence: float
    method: str
    n: int
    resamples: int


def bootstrap_interval(
    values: Iterable[float],
    statistic: Callable[..., np.ndarray] = np.mean,
    *,
    method: Literal["percentile", "BCa"] = "percentile",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> BootstrapInterval:
    """Bootstrap interval of a statistic of one sample, by `scipy.stats.bootstrap`.

    `statistic` takes an array and `axis`. NaN values are left out; `n` is how many stayed. Warns below
    eight values: three seeds have ten distinct resamples, so the interval covers far less than its name.

    Raises:
        PlumblineError: fewer than two values.
    """
    from scipy import stats

    sample = np.asarray(list(values), dtype=float)
    sample = sample[~np.isnan(sample)]
    n = int(sample.size)
    if n < 2:
        raise PlumblineError(f"a bootstrap needs at least two values; got {n}")
    if n < FEW:
        distinct = math.comb(2 * n - 1, n)
        warnings.warn(
            f"bootstrap of n = {n} values: only {distinct} distinct resamples, so the {confidence:.0%} interval "
            "covers less than its name; use the t prediction next to it",
            stacklevel=2,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        result = stats.bootstrap(
            (sample,),
            statistic,
            n_resamples=resamples,
            confidence_level=confidence,
            method=method,
            rng=np.random.default_rng(seed),
        )
    low, high = result.confidence_interval
    return BootstrapInterval(
        low=float(low), high=float(high), confidence=confidence, method=method, n=n, resamples=resamples
    )


def probability_not_above(
    method: Iterable[float], base: Iterable[float], *, resamples: int = 10_000, seed: int = 0
) -> float:
    """Pr(mean of resampled `method` <= mean of resampled `base`), both drawn with replacement.

    Zero only means that every value of one sample lies above every value of the other, or nearly so: with
    three seeds the smallest non-zero probability is of the order of 1/729.

    Raises:
        PlumblineError: a sample without values.
    """
    rng = np.random.default_rng(seed)
    means = []
    for name, values in (("method", method), ("base", base)):
        sample = np.asarray(list(values), dtype=float)
        sample = sample[~np.isnan(sample)]
        if not sample.size:
            raise PlumblineError(f"the sample {name!r} has no values")
        means.append(rng.choice(sample, size=(resamples, sample.size)).mean(axis=1))
    return float(np.mean(means[0] <= means[1]))
