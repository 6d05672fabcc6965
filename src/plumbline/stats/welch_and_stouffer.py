"""Computes Welch's test, once or per task, and Stouffer's combination with and without correlated tasks.

Source: transfer study, sections 3.3 and appendix E.4.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import normal_isf, normal_sf, t_sf
from plumbline.stats.sample_spread import sample_deviation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, slots=True)
class WelchResult:
    """t, Welch-Satterthwaite degrees of freedom, two-sided p and the one-sided p of `a` being larger."""

    t: float
    df: float
    p: float
    p_greater: float


def welch(a: Iterable[float], b: Iterable[float]) -> WelchResult:
    """Welch's t = (mean a - mean b) / sqrt(var a / n_a + var b / n_b); NaN values are left out.

    All fields are NaN where a side has fewer than two values or neither side varies.
    """
    first, second = (np.asarray(list(side), dtype=float) for side in (a, b))
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if min(first.size, second.size) < 2 or not any(map(sample_deviation, (first, second))):
        return WelchResult(t=math.nan, df=math.nan, p=math.nan, p_greater=math.nan)
    (mean_a, of_a), (mean_b, of_b) = (_mean_and_squared_error(side) for side in (first, second))
    return _welch(mean_a - mean_b, (of_a, first.size), (of_b, second.size))


def welch_of_summaries(difference: float, *sides: tuple[float, int]) -> WelchResult:
    """Welch's test of a difference of two means by the standard deviation and the number of values of each side.

    All fields are NaN where a side has fewer than two values, neither side varies, or there is one side alone.
    """
    largest = max(std for std, _ in sides)
    if len(sides) != 2 or min(n for _, n in sides) < 2 or largest == 0:
        return WelchResult(t=math.nan, df=math.nan, p=math.nan, p_greater=math.nan)
    first, second = (((std / largest) ** 2 / n, n) for std, n in sides)
    return _welch(difference / largest, first, second)


def _welch(difference: float, a: tuple[float, int], b: tuple[float, int]) -> WelchResult:
    """Welch's test by var / n and n of each side."""
    (of_a, n_a), (of_b, n_b) = a, b
    df = (of_a + of_b) ** 2 / (of_a**2 / (n_a - 1) + of_b**2 / (n_b - 1))
    t = difference / math.sqrt(of_a + of_b)
    return WelchResult(t=t, df=df, p=float(2 * t_sf(abs(t), df)), p_greater=float(t_sf(t, df)))


def _mean_and_squared_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and var / n, rounded at each step as `scipy.stats.ttest_ind` does."""
    n, mean = values.size, values.mean()
    return float(mean), float(((values - mean) ** 2).mean() * (n / (n - 1)) / n)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoufferResult:
    """Stouffer's combined Z with its p-values; `tasks` were combined, `missing` had no p-value."""

    z: float
    p_one_sided: float
    p_two_sided: float
    tasks: int
    missing: int


def stouffer(p_one_sided: Iterable[float], correlation: np.ndarray | None = None) -> StoufferResult:
    """Z = sum_i Phi^-1(1 - p_i) / sqrt(1' R 1); R is the identity where no correlation is given.

    Args:
        p_one_sided: one-sided p per task; NaN for a task without a test.
        correlation: correlation of the per-task z under the null, in the order of the tasks. Positive
            correlation widens the null distribution of the sum: the plain form then overstates Z.

    Raises:
        PlumblineError: the correlation has another shape, or gives the sum no variance.
    """
    p = np.asarray(list(p_one_sided), dtype=float)
    has_p = ~np.isnan(p)
    tasks = int(has_p.sum())
    if correlation is None:
        variance = float(tasks)
    else:
        matrix = np.asarray(correlation, dtype=float)
        if matrix.shape != (p.size, p.size):
            raise PlumblineError(f"the correlation of {p.size} tasks must be square; its shape is {matrix.shape}")
        variance = float(matrix[np.ix_(has_p, has_p)].sum())
    if tasks == 0:
        return StoufferResult(z=math.nan, p_one_sided=math.nan, p_two_sided=math.nan, tasks=0, missing=p.size)
    if not variance > 0:
        raise PlumblineError(f"this correlation gives the sum of the tasks' z the variance {variance:g}")
    z = float(np.sum(normal_isf(p[has_p])) / math.sqrt(variance))
    return StoufferResult(
        z=z,
        p_one_sided=float(normal_sf(z)),
        p_two_sided=float(2 * normal_sf(abs(z))),
        tasks=tasks,
        missing=int(p.size - tasks),
    )


def welch_per_task(method: pd.DataFrame, baseline: pd.DataFrame) -> pd.DataFrame:
    """Welch per task from two frames seeds x tasks: columns difference, t, df, p, p_greater, on the tasks.

    Raises:
        PlumblineError: the two frames do not have the same tasks.
    """
    import pandas as pd

    if set(method.columns) != set(baseline.columns):
        different = sorted(set(method.columns) ^ set(baseline.columns))
        raise PlumblineError(f"the two sides have different tasks: {different}")
    rows = {}
    for task in method.columns:
        test = welch(method[task], baseline[task])
        difference = method[task].mean() - baseline[task].mean()
        rows[task] = {"difference": difference, "t": test.t, "df": test.df, "p": test.p, "p_greater": test.p_greater}
    return pd.DataFrame.from_dict(rows, orient="index")


def task_correlation(groups: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Correlation between tasks over seeds, pooled within groups (frames seeds x tasks of one configuration).

    Each group is centred on its own mean, so that differences between configurations do not enter. Warns
    where the pooled degrees of freedom are fewer than the tasks: the estimate is then of low rank and noisy.
    A task that never varies correlates with nothing (0, and 1 with itself).
    """
    import pandas as pd

    frames = [group.astype(float) for group in groups]
    residuals = pd.concat([frame - frame.mean() for frame in frames]).dropna()
    freedom = len(residuals) - len(frames)
    if freedom < residuals.shape[1]:
        warnings.warn(
            f"correlation of {residuals.shape[1]} tasks from {freedom} degrees of freedom: low rank and noisy",
            stacklevel=2,
        )
    spread = np.sqrt((residuals**2).sum().to_numpy())
    scaled = residuals.to_numpy() / np.where(spread > 0, spread, 1.0)
    matrix = scaled.T @ scaled
    np.fill_diagonal(matrix, 1.0)
    return pd.DataFrame(matrix, index=residuals.columns, columns=residuals.columns)
