"""Measures the noise floor, how far apart two runs of one configuration land, and gives verdicts in units of it.

Source: transfer study, section 3.3 and the caption of Table 2.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import f_quantile, f_sf, normal_sf, t_sf
from plumbline.stats.multiplicity import adjust
from plumbline.stats.power import chance_called, compute_resolvable_distance
from plumbline.stats.sample_spread import bound_sigma, sample_deviation

if TYPE_CHECKING:  # tables are of pandas, what a verdict needs is not
    import pandas as pd


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseFloor:
    """Mean and spread of one configuration under several seeds.

    `sigma` is the unbiased standard deviation (n - 1 in the denominator), NaN where fewer than two seeds finished.
    `missing` counts the requested seeds that have no value: they are never read as zero.
    """

    mean: float
    sigma: float
    n: int
    missing: int = 0

    @property
    def usable(self) -> bool:
        """Whether distances can be measured in units of this floor: two finished seeds or more, and a spread."""
        return self.n >= 2 and self.sigma > 0

    def delta(self, values: np.ndarray | float) -> np.ndarray | float:
        """Distance x - mean of each value, in the units of the values."""
        return values - self.mean

    def z(self, values: np.ndarray | float) -> np.ndarray | float:
        """z = (x - mean) / sigma: the paper's statistic, which treats mean and sigma as known."""
        return (values - self.mean) / self.sigma if self.usable else np.asarray(values) * math.nan

    def prediction(self, values: np.ndarray | float) -> np.ndarray | float:
        """t = (x - mean) / (sigma sqrt(1 + 1/n)): the same distance read as a prediction of one new run.

        Without an effect, and for normally distributed seeds, it follows Student's t with n - 1 degrees of freedom
        exactly: it accounts for mean and sigma being estimates from n runs.
        """
        if not self.usable:
            return np.asarray(values) * math.nan
        return (values - self.mean) / (self.sigma * math.sqrt(1 + 1 / self.n))

    def sigma_range(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the true spread at `level`, as multiples of `sigma`, for normal seeds; else NaN."""
        if not self.usable:
            return math.nan, math.nan
        return bound_sigma(1.0, self.n - 1, 1 - level)

    def smallest_called(self, *, m: int = 1, alpha: float = 0.05) -> float:
        """The smallest |x - mean| that the prediction calls different at level alpha over m tests (Bonferroni).

        In the units of the values: t_(n - 1)(alpha / 2m) sigma sqrt(1 + 1/n); NaN where the floor is not usable.
        `compute_share_called` is how often a true gain of that size is called.
        """
        if not self.usable:
            return math.nan
        return compute_resolvable_distance(self.sigma, self.n, m=m, alpha=alpha)

    def compute_share_called(self, *, m: int = 1, alpha: float = 0.05) -> float:
        """The share of repeats in which a true gain of `smallest_called` is called better, were `sigma` the true
        spread.

        A repeat has other seeds of both sides. The share is above one half, since small estimates of sigma are more
        frequent. NaN where the floor is not usable.
        """
        if not self.usable:
            return math.nan
        return chance_called(self.smallest_called(m=m, alpha=alpha), self.sigma, self.n, m=m, alpha=alpha)


def noise_floor(values: Iterable[float]) -> NoiseFloor:
    """Mean, unbiased sigma and n of a reference's seeds; NaN marks a seed without a value.

    Raises:
        PlumblineError: no values at all, or an infinite one.
    """
    seeds = np.asarray(list(values), dtype=float)
    if seeds.size == 0:
        raise PlumblineError("a noise floor needs the values of at least one seed; got none")
    if np.isinf(seeds).any():
        raise PlumblineError("a seed value is infinite; mark a run without a value as NaN")
    finite = seeds[~np.isnan(seeds)]
    n = int(finite.size)
    return NoiseFloor(
        mean=float(finite.mean()) if n else math.nan,
        sigma=sample_deviation(finite),
        n=n,
        missing=int(seeds.size - n),
    )


def spread_by_chance(methods: int, n: int, beyond: float) -> tuple[float, float]:
    """Compute the spread of single runs of methods without any effect, in units of the sigma of `n` other seeds.

    Its square follows F with methods - 1 and n - 1 degrees of freedom, for normally distributed runs.

    Args:
        methods: number of methods, one run each.
        n: number of the reference's seeds.
        beyond: spread whose chance is computed.

    Returns:
        The median of that spread, and the chance that it is above `beyond`.

    Raises:
        PlumblineError: fewer than two methods or seeds.
    """
    if methods < 2 or n < 2:
        raise PlumblineError(f"a spread needs two methods and two seeds; got {methods=}, {n=}")
    freedom = methods - 1, n - 1
    return math.sqrt(f_quantile(0.5, *freedom)), f_sf(beyond**2, *freedom)


def two_sided_normal(z: np.ndarray | float) -> np.ndarray:
    """Two-sided p of a z under the standard normal; below about 1e-308 (|z| > 37) it underflows to 0."""
    return 2 * np.asarray(normal_sf(np.abs(z)))


def two_sided_t(t: np.ndarray | float, df: float) -> np.ndarray:
    """Two-sided p of a t statistic with `df` degrees of freedom."""
    return 2 * np.asarray(t_sf(np.abs(t), df))


def compute_verdicts(
    values: pd.Series,
    reference: Iterable[float] | NoiseFloor,
    *,
    m: int | None = None,
    baseline: Hashable | None = None,
) -> pd.DataFrame:
    """Table 2's verdict columns: each method's distance from the reference, in units of its noise floor.

    Args:
        values: method -> value; NaN for a run that is missing or diverged.
        reference: the reference's seed values (NaN for a missing seed), or a floor already made.
        m: size of the family of tests, default the number of methods other than `baseline`. A method
            without a value still counts in it: it was tried.
        baseline: the row that is the reference itself: it has delta and z but is no test, so no p.

    Returns:
        A frame on the index of `values` with delta, z, p (two-sided normal), p_bonferroni, p_holm, p_bh,
        t_run_vs_seeds and p_run_vs_seeds (t with n - 1 degrees of freedom), and p_run_vs_seeds_bonferroni, _holm and
        _bh.
        What cannot be computed is NaN.

    Raises:
        PlumblineError: m is smaller than the number of tests made, or `baseline` is not a row.
    """
    import pandas as pd

    if baseline is not None and baseline not in values.index:
        raise PlumblineError(f"baseline {baseline!r} is not among the methods {list(values.index)}")
    if not values.index.is_unique:
        raise PlumblineError("each method may have one value; the index has repeated names")
    floor = reference if isinstance(reference, NoiseFloor) else noise_floor(reference)
    if not floor.usable:
        warnings.warn(
            f"no noise floor: {floor.n} finished seeds with sigma {floor.sigma}; z and p are left missing",
            stacklevel=2,
        )
    x = values.to_numpy(dtype=float)
    tested = np.array([name != baseline for name in values.index]) if baseline is not None else np.ones(len(x), bool)
    family = int(tested.sum()) if m is None else m
    z = np.asarray(floor.z(x), dtype=float)
    t_run_vs_seeds = np.asarray(floor.prediction(x), dtype=float)
    p = np.where(tested, two_sided_normal(z), math.nan)
    p_run_vs_seeds = np.where(tested, two_sided_t(t_run_vs_seeds, floor.n - 1), math.nan) if floor.usable else p
    return pd.DataFrame(
        {
            "delta": np.asarray(floor.delta(x), dtype=float),
            "z": z,
            "p": p,
            "p_bonferroni": adjust(p, "bonferroni", m=family),
            "p_holm": adjust(p, "holm", m=family),
            "p_bh": adjust(p, "bh", m=family),
            "t_run_vs_seeds": t_run_vs_seeds,
            "p_run_vs_seeds": p_run_vs_seeds,
            "p_run_vs_seeds_bonferroni": adjust(p_run_vs_seeds, "bonferroni", m=family),
            "p_run_vs_seeds_holm": adjust(p_run_vs_seeds, "holm", m=family),
            "p_run_vs_seeds_bh": adjust(p_run_vs_seeds, "bh", m=family),
        },
        index=values.index,
    )
