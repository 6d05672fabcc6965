"""Computes the spread of a sample, exactly zero where its values are all equal, and the interval of a true spread;
refuses empty samples and non-finite values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import chi_squared_quantile

if TYPE_CHECKING:
    import pandas as pd

#: A share of the numbers that were subtracted: differences that are apart by less are equal except for their rounding.
ROUNDING = 1e-12


def sample_deviation(values: np.ndarray | pd.Series, subtracted: float = 0.0) -> float:
    """Return the unbiased standard deviation (n - 1 in the denominator); NaN of fewer than two values.

    Where all values are equal it is exactly 0. The formula alone leaves 3e-17 of three times 0.2, whose mean is
    rounded, and a distance in units of that is beyond any doubt.

    Args:
        values: finite numbers.
        subtracted: where values are differences, the largest number that was subtracted: less than `ROUNDING` of it
            apart, they are equal.
    """
    if len(values) < 2:
        return math.nan
    least, most = float(values.min()), float(values.max())
    if least == most or most - least <= ROUNDING * subtracted:
        return 0.0
    return float(values.std(ddof=1))


def bound_sigma(sigma: float, df: float, level: float = 0.1) -> tuple[float, float]:
    """The two-sided interval of a true sigma that was estimated with `df` degrees of freedom (infinite: it is known).

    For normal runs it misses the true one with chance `level`, half of that on either side; 90 % by default.
    """
    if math.isinf(df):
        return sigma, sigma
    low, high = (float(chi_squared_quantile(share, df)) for share in (1 - level / 2, level / 2))
    return sigma * math.sqrt(df / low), sigma * math.sqrt(df / high)


def require_finite(whose: str, values: Sequence[float]) -> np.ndarray:
    """Return the values of an arm as an array.

    Raises:
        PlumblineError: there are none, or one is not a finite number.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not array.size:
        raise PlumblineError(f"{whose} has no runs")
    if not np.isfinite(array).all():
        raise PlumblineError(f"{whose} has a value that is no finite number: {array[~np.isfinite(array)][0]}")
    return array
