"""Compares runs that share a seed and their data order: paired differences, and ratios of paired measurements.

Source: premature study, Tables 1, 2 and 11 (mean and sample standard deviation of paired differences, wins).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import t_sf
from plumbline.stats.sample_spread import sample_deviation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedResult:
    """Mean and sample sd (n - 1) of the paired differences a - b, their t test, and how often `a` won or tied."""

    mean: float
    sigma: float
    n: int
    missing: int
    t: float
    p: float
    wins: int
    ties: int


def compute_paired_difference(a: pd.Series, b: pd.Series) -> PairedResult:
    """Compare `a` with `b` over their common index (seeds, or seed and task).

    A pair with a missing side is left out and counted in `missing`, never filled in. `wins` counts a > b;
    turn the sign for a metric where lower is better. t and p are NaN for fewer than two pairs or no spread.

    Raises:
        PlumblineError: the two sides are not of the same index.
    """
    _require_pairs(a, b)
    all_differences = a.astype(float) - b.astype(float).reindex(a.index)
    differences = all_differences.dropna()
    n = len(differences)
    sigma = sample_deviation(differences, subtracted=max(a.abs().max(), b.abs().max()) if n else 0.0)
    testable = n >= 2 and sigma > 0
    t = float(differences.mean() / (sigma / math.sqrt(n))) if testable else math.nan
    return PairedResult(
        mean=float(differences.mean()) if n else math.nan,
        sigma=sigma,
        n=n,
        missing=len(all_differences) - n,
        t=t,
        p=float(2 * t_sf(abs(t), n - 1)) if testable else math.nan,
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedRatio:
    """Median and quartiles (`low`, `high`) of the ratios a / b of `n` pairs; `missing` pairs were left out."""

    median: float
    low: float
    high: float
    n: int
    missing: int


def compute_paired_ratio(a: pd.Series, b: pd.Series) -> PairedRatio:
    """Divide `a` by `b`, pair by pair over their common index (repeats of a measurement, say).

    A pair with a missing side, or whose `b` is zero, is left out and counted in `missing`.

    Raises:
        PlumblineError: the two sides are not of the same index.
    """
    _require_pairs(a, b)
    divisor = b.astype(float).reindex(a.index)
    all_ratios = a.astype(float) / divisor.where(divisor != 0)
    ratios = all_ratios.dropna()
    low, median, high = ratios.quantile([0.25, 0.5, 0.75])
    return PairedRatio(
        median=float(median), low=float(low), high=float(high), n=len(ratios), missing=len(all_ratios) - len(ratios)
    )


def _require_pairs(a: pd.Series, b: pd.Series) -> None:
    if not a.index.is_unique or not b.index.is_unique or set(a.index) != set(b.index):
        raise PlumblineError("paired sides need the same index, without repeats; check the seeds of both arms")
