"""Computes an e-value of a comparison, for those who look as long as they like: 20 is worth an error of 1 in 20.

The noncentral density of t over the central one, mixed over gains in sigma by the half of a normal law that is above 0,
of scale 2: a nonnegative martingale in t_1, t_2, ... where there is no gain, so that the chance that it ever reaches
1 / alpha is at most alpha (Ville), however many looks there are (Perez-Ortiz, Lardy, de Heide and Gruenwald 2024; Wang
and Ramdas 2024, arXiv 2310.03722; Lindon, Ham, Tingley and Bojinov 2022, arXiv 2210.08589).

When to stop may depend on t, on earlier t, and on what has nothing to do with the values (time, money). It may not
depend on the values themselves, say on a candidate's loss being below some number: that is no function of t, and breaks
the promise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    from plumbline.stats.sequential.look import Look

#: Scale of the gains over which is mixed, in sigma.
SCALE = 2.0


def e_value(look: Look, *, scale: float = SCALE) -> float:
    """Compute the e-value at a look against `no gain beyond min_gain`.

    Raises:
        PlumblineError: a scale that is not above 0.
    """
    return float(e_values(np.asarray(look.t), look.df, look.information, scale=scale))


def anytime_interval(look: Look, *, alpha: float = 0.05, scale: float = SCALE) -> tuple[float, float]:
    """Gains that the e-value of a look does not refuse at 1 / alpha on either side, in the metric's units.

    The intervals of all looks together cover the gain with a chance of 1 - 2 alpha at least, and the lower end is at
    `min_gain` or above exactly where the e-value is 1 / alpha or more.

    Raises:
        PlumblineError: alpha outside (0, 0.5).
    """
    if not 0 < alpha < 0.5:
        raise PlumblineError(f"alpha = {alpha}: must lie between 0 and 0.5")

    width = e_edge(look.df, look.information, alpha, scale=scale) * look.sigma / math.sqrt(look.information)
    return look.gain - width, look.gain + width


def e_edge(df: float, information: float, alpha: float, *, scale: float = SCALE) -> float:
    """Find the t from which on the e-value of a look is 1 / alpha or more; infinite where none is."""

    def refused(t: float) -> bool:
        return bool(e_values(np.asarray(t), df, information, scale=scale) >= 1 / alpha)

    low, high = 0.0, 1.0
    while not refused(high) and high < 1e9:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if refused(middle) else (middle, high)
    return high if refused(high) else math.inf


def e_values(t: np.ndarray, df: float, information: float, *, scale: float = SCALE) -> np.ndarray:
    """Compute e-values of many t at one look.

    Given sigma's law both integrals, over the gain and over sigma, are known: what is left is one tail of a central t.

    Raises:
        PlumblineError: a scale that is not above 0.
    """
    if not 0 < scale < math.inf:
        raise PlumblineError(f"scale = {scale}: must be a gain above 0, in sigma")
    precision = information + 1 / scale**2
    # The share of t's distance that the mixture can explain; with it, 1 - share * r^2 for r = t / sqrt(df + t^2).
    share, r = information / precision, t / np.sqrt(df + t * t)
    left = (df + (1 - share) * t * t) / (df + t * t)
    tail = special.stdtr(df + 1, np.sqrt(share * (df + 1) / left) * r)
    return 2 / (scale * math.sqrt(precision)) * left ** (-(df + 1) / 2) * tail
