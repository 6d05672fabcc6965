"""Pools the spread of one run over groups of runs, and tests whether one group spreads wider than others.

Means never leave their group: only squares of distances from a group's own mean are pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from plumbline.stats.sample_spread import require_finite, sample_deviation

#: The level of the F test that lets sigma of other groups be used for one. One as lax as this refuses a quarter of
#: those that are right; a stricter one takes along more that are wrong.
CROSSING_LEVEL = 0.25


class SigmaEstimate(NamedTuple):
    """An estimate of sigma and its degrees of freedom; (0, 0) if nothing is known."""

    sigma: float
    df: float


def pool_spreads(groups: Iterable[Sequence[float]]) -> SigmaEstimate:
    """Pool the spread of groups: each holds the runs of one configuration on machines of one fingerprint.

    Raises:
        PlumblineError: a group without runs, or a value that is not a finite number.
    """
    arrays = [require_finite(f"group {number}", group) for number, group in enumerate(groups, start=1)]
    return combine_estimates(
        *(SigmaEstimate(sample_deviation(group), len(group) - 1) for group in arrays if len(group) > 1)
    )


def combine_estimates(*spreads: tuple[float, float]) -> SigmaEstimate:
    """Combine several estimates (sigma, df) of the same sigma into one."""
    df = sum(freedom for _, freedom in spreads)
    scale = max((sigma for sigma, _ in spreads), default=0.0)
    if not df or not scale:
        return SigmaEstimate(0.0, df)
    return SigmaEstimate(scale * math.sqrt(sum(freedom * (sigma / scale) ** 2 for sigma, freedom in spreads) / df), df)


def may_cross(spread: SigmaEstimate, other_spread: SigmaEstimate) -> bool:
    """Return whether sigma from other groups may be pooled with that of one: a one-sided F test.

    Only a spread that is wider here is refused, since that is what would make keeps of nothing. Where one side has no
    degrees of freedom there is nothing to test, and nothing crosses.
    """
    return wider_spread_p(spread, other_spread) > CROSSING_LEVEL


def wider_spread_p(spread: SigmaEstimate, other_spread: SigmaEstimate) -> float:
    """One-sided p of the F test that the spread here is no wider than elsewhere; NaN where one side has no estimate."""
    if not spread.df or not other_spread.df or not other_spread.sigma:
        return math.nan
    return float(special.fdtrc(spread.df, other_spread.df, (spread.sigma / other_spread.sigma) ** 2))


def wider_power(df_here: float, df_elsewhere: float, times: float, level: float = 0.05) -> float:
    """Probability that the test of `wider_spread_p` detects, at a level, a spread that is `times` that of elsewhere."""
    critical = special.fdtri(df_here, df_elsewhere, 1 - level)
    return float(special.fdtrc(df_here, df_elsewhere, critical / times**2))


def bartlett_p(groups: Iterable[Sequence[float]]) -> float:
    """P-value of Bartlett's test that all groups have one spread; groups of one run do not count; NaN for fewer than 2.

    Source: Bartlett 1937, with his correction for small groups. It takes runs as normal.
    """
    spreads = [
        (sample_deviation(array) ** 2, len(array) - 1)
        for number, group in enumerate(groups, start=1)
        if len(array := require_finite(f"group {number}", group)) > 1
    ]
    if len(spreads) < 2 or min(variance for variance, _ in spreads) == 0:
        return math.nan
    variance, df = (np.array(part) for part in zip(*spreads, strict=True))
    total = df.sum()
    distance = total * math.log(df @ variance / total) - df @ np.log(variance)
    correction = 1 + ((1 / df).sum() - 1 / total) / (3 * (len(df) - 1))
    return float(special.chdtrc(len(df) - 1, distance / correction))
