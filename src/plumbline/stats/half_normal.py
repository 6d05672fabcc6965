"""Places effects on a half-normal plot, and computes the margin beyond which one stands out of the others.

Daniel (Technometrics 1959): absolute effects, sorted, against quantiles of the half-normal law; those that do nothing
lie on a line through 0. Lenth (Technometrics 1989): a pseudo standard error from the effects themselves, if few of them
are real; it needs no other estimate of sigma, and is shown beside the one that decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True, slots=True)
class LenthMargins:
    """Lenth's pseudo standard error, and the margins of one effect and of all together; NaN without effects.

    Attributes:
        pseudo_error: 1.5 times the median absolute effect, those beyond 2.5 times a first such estimate left out.
        margin: an effect that does nothing is beyond it by chance in 1 - confidence of experiments.
        simultaneous: one or more of all that do nothing are beyond it in 1 - confidence of experiments.
    """

    pseudo_error: float
    margin: float
    simultaneous: float


def compute_lenth_margins(effects: Sequence[float], confidence: float = 0.95) -> LenthMargins:
    """Compute Lenth's margins, by t with a third as many degrees of freedom as there are effects."""
    sizes = np.abs([effect for effect in effects if not math.isnan(effect)])
    if not len(sizes):
        return LenthMargins(math.nan, math.nan, math.nan)
    first = 1.5 * float(np.median(sizes))
    inside = sizes[sizes < 2.5 * first]
    pseudo = 1.5 * float(np.median(inside)) if len(inside) else 0.0
    df = len(sizes) / 3
    level, joint_level = (1 + confidence) / 2, (1 + confidence ** (1 / len(sizes))) / 2
    return LenthMargins(
        pseudo, pseudo * float(special.stdtrit(df, level)), pseudo * float(special.stdtrit(df, joint_level))
    )


def half_normal_quantiles(number: int) -> np.ndarray:
    """Quantiles of the half-normal law for so many sorted absolute effects, the smallest first."""
    return np.asarray(special.ndtri(0.5 + 0.5 * (np.arange(1, number + 1) - 0.5) / max(1, number)))
