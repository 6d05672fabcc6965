"""What a try without fresh runs takes for t where the candidate spreads more widely than the baseline."""

from __future__ import annotations

import numpy as np
from scipy import stats


def take_stricter(t_WK: np.ndarray, base_WB: np.ndarray, own_WK: np.ndarray) -> np.ndarray:
    """Replace t, after 1, 2, .. runs of a candidate, by the one that has Welch's p, where that is less.

    Derived apart from `plumbline.stats.sequential.look`, which a test holds against it. Shapes: W worlds, B runs of
    the baseline, K of the candidate.
    """
    own_K, base = np.arange(1, own_WK.shape[1] + 1), base_WB.shape[1]
    base_W1 = base_WB.var(axis=1, ddof=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        own_WK2 = np.stack([own_WK[:, :runs].var(axis=1, ddof=1 if runs > 1 else 0) for runs in own_K], axis=1)
        gain_WK = own_WK.cumsum(axis=1) / own_K - base_WB.mean(axis=1, keepdims=True)
        a_WK, b_W1 = own_WK2 / own_K, base_W1 / base
        df_WK = (a_WK + b_W1) ** 2 / (a_WK**2 / (own_K - 1) + b_W1**2 / (base - 1))
        p_WK = stats.t.sf(gain_WK / np.sqrt(a_WK + b_W1), df_WK)
        welch_WK = stats.t.isf(p_WK, own_K + base - 2)
        wider_WK = stats.f.cdf(own_WK2 / base_W1, own_K - 1, base - 1) > 0.5
    return np.where(wider_WK & (t_WK > 0) & (welch_WK < t_WK), welch_WK, t_WK)
