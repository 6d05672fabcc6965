"""Finds where a training curve reaches a level: the tokens a method needs to match a baseline's final loss.

Source: premature study, Table 1 ("tokens to baseline final loss").
"""

from __future__ import annotations

import math

import numpy as np

from plumbline.core.errors import PlumblineError


def first_at_or_below(x: np.ndarray, y: np.ndarray, level: float) -> float:
    """First x at which y <= level, linear between evaluations; NaN where the curve never gets there.

    Args:
        x: increasing positions (tokens or steps), one per evaluation.
        y: values there; NaN for an evaluation that is missing.
        level: what to reach.

    Raises:
        PlumblineError: different lengths, or x that does not increase.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.shape != y.shape or (np.diff(x) <= 0).any():
        raise PlumblineError("a curve needs one value per position, and positions that increase")
    x, y = x[~np.isnan(y)], y[~np.isnan(y)]
    places = np.flatnonzero(y <= level)
    if not places.size:
        return math.nan
    i = int(places[0])
    if i == 0:
        return float(x[i])
    share = (y[i - 1] - level) / (y[i - 1] - y[i])
    return float(x[i - 1] + share * (x[i] - x[i - 1]))
