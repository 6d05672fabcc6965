"""Ranks values, and computes rank correlations with an exact p for the small n of architecture studies.

Source: transfer study, section 5.2 and Table 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import t_sf

if TYPE_CHECKING:
    import pandas as pd

#: Up to this many pairs all permutations are visited (9! = 362,880).
EXACT_UP_TO = 9


@dataclass(frozen=True, kw_only=True, slots=True)
class SpearmanResult:
    """Spearman's rho over n pairs with two two-sided p-values.

    `p_permutation` is the share of pairings with |rho| at least as large: over all of them where `exact`, else over
    random ones. `p_t` is the t approximation with n - 2 degrees of freedom, as commonly printed.
    """

    rho: float
    n: int
    p_permutation: float
    exact: bool
    p_t: float


def descending_ranks(values: pd.Series) -> pd.Series:
    """Rank 1 is the largest value; ties share their mean rank; a missing value has no rank (NaN)."""
    return values.rank(ascending=False)


def spearman(x: Iterable[float], y: Iterable[float], *, resamples: int = 20_000, seed: int = 0) -> SpearmanResult:
    """Spearman's rho of paired values; a pair with a NaN is left out.

    Raises:
        PlumblineError: different lengths, or fewer than three pairs.
    """
    first, second = np.asarray(list(x), dtype=float), np.asarray(list(y), dtype=float)
    if first.shape != second.shape:
        raise PlumblineError(f"rank correlation needs pairs; got {first.size} and {second.size} values")
    is_complete = ~(np.isnan(first) | np.isnan(second))
    first, second = _mean_ranks(first[is_complete]), _mean_ranks(second[is_complete])
    n = int(is_complete.sum())
    if n < 3:
        raise PlumblineError(f"rank correlation needs at least three pairs; got {n}")
    first, second = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(first @ first) * float(second @ second))
    if scale == 0:
        return SpearmanResult(rho=math.nan, n=n, p_permutation=math.nan, exact=False, p_t=math.nan)
    rho = float(first @ second) / scale
    exact = n <= EXACT_UP_TO
    if exact:
        order = np.array(list(itertools.permutations(range(n))), dtype=np.int8)
    else:
        rng = np.random.default_rng(seed)
        order = rng.permuted(np.tile(np.arange(n), (resamples, 1)), axis=1)
    # Rounding errors must not decide whether a pairing is as extreme as the observed one.
    extreme = np.abs(second[order] @ first) / scale >= abs(rho) - 1e-12
    share = float(extreme.mean()) if exact else float((extreme.sum() + 1) / (resamples + 1))
    t = rho * math.sqrt((n - 2) / (1 - rho**2)) if abs(rho) < 1 else math.copysign(math.inf, rho)
    return SpearmanResult(rho=rho, n=n, p_permutation=share, exact=exact, p_t=float(2 * t_sf(abs(t), n - 2)))


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    """Rank 1 is the smallest value; ties share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]


def signs_preserved(before: pd.Series, after: pd.Series) -> tuple[int, int]:
    """Count the effects that keep their sign, and all those with a non-zero sign before and a value after."""
    import pandas as pd

    effects = pd.concat([before, after], axis=1, keys=["before", "after"]).dropna()
    effects = effects[effects["before"] != 0]
    return int((np.sign(effects["before"]) == np.sign(effects["after"])).sum()), len(effects)
