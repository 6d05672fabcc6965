"""Finds runs that repeat another one: their curves are far nearer to each other than curves of different seeds are.

Two runs of one seed on a GPU are not equal to the last digit, but stay near each other; runs of different seeds are as
far from each other as the noise makes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: Two curves whose mean distance is below this share of the median distance of all pairs are one run
#: (benchmarks/repeated_curves.md has how often independent runs are so near).
SHARE = 0.03
#: Steps that two curves have to share; curves without which there is no distance to compare with.
STEPS, LEAST_CURVES = 8, 3
#: Of more curves than these the first are looked at.
MOST_CURVES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePair:
    """Two curves that are near each other.

    Attributes:
        earlier, later: their places.
        share: their mean distance over the median distance of all pairs.
    """

    earlier: int
    later: int
    share: float


def find_repeated_curves(curves: Sequence[Mapping[int, float]]) -> list[CurvePair]:
    """Find the curves (step -> value) that repeat an earlier one; none where there are too few to tell."""
    shares = measure_shares(curves)
    if shares is None:
        return []
    places = np.argwhere(np.triu(shares < SHARE, k=1))
    return [CurvePair(earlier=int(i), later=int(j), share=float(shares[i, j])) for i, j in places]


def find_nearest_curves(curves: Sequence[Mapping[int, float]]) -> CurvePair | None:
    """Find the two curves (step -> value) that are nearest to each other; None if no distance can be compared."""
    shares = measure_shares(curves)
    if shares is None:
        return None
    earlier, later = np.unravel_index(np.nanargmin(shares), shares.shape)
    return CurvePair(earlier=int(earlier), later=int(later), share=float(shares[earlier, later]))


def measure_shares(curves: Sequence[Mapping[int, float]]) -> np.ndarray | None:
    """Compute, for each pair, its mean distance at the steps that both have over the median of all pairs; NaN of a pair
    that shares too few. None if no distance can be compared.
    """
    curves = curves[:MOST_CURVES]
    steps = sorted({step for curve in curves for step in curve})
    if len(curves) < LEAST_CURVES or len(steps) < STEPS:
        return None
    values = np.array([[curve.get(step, math.nan) for step in steps] for curve in curves])
    values[~np.isfinite(values)] = math.nan
    distances = np.full((len(curves), len(curves)), math.nan)
    for place, curve in enumerate(values):
        gaps = np.abs(values[place + 1 :] - curve)
        shared = (~np.isnan(gaps)).sum(axis=1)
        mean = np.nansum(gaps, axis=1) / np.maximum(shared, 1)
        distances[place, place + 1 :] = np.where(shared >= STEPS, mean, math.nan)
    pairs = distances[~np.isnan(distances)]
    if len(pairs) < LEAST_CURVES or not (median := float(np.median(pairs))) > 0:
        return None
    return distances / median
