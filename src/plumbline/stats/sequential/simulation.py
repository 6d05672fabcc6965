"""Simulates a design on random runs: for what integration cannot do (other noise than normal, a bank that candidates
share), and as a second way to every number of a boundary.

Shapes: W worlds, B runs of the baseline, K of the candidate.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from plumbline.stats.sequential.boundary import Boundary
from plumbline.stats.sequential.design import SequentialDesign


def simulate_paths(design: SequentialDesign, baseline_WB: np.ndarray, candidate_WK: np.ndarray) -> np.ndarray:
    """Compute t at every look (W, K), more being better; NaN if sigma has no estimate.

    Args:
        baseline_WB: the baseline's runs in their order, as many as the last look has.
        candidate_WK: the candidate's.
    """
    if design.plan == "paired":
        means_WK, squares_WK = _running_moments(candidate_WK - baseline_WB)
    else:
        taken_K = np.array([design.baseline_runs(look) for look in range(1, design.most + 1)]) - 1
        base_WB, base_squares_WB = _running_moments(baseline_WB)
        own_WK, own_squares_WK = _running_moments(candidate_WK)
        means_WK, squares_WK = own_WK - base_WB[:, taken_K], own_squares_WK + base_squares_WB[:, taken_K]
    looks = range(1, design.most + 1)
    df_K = np.array([design.df(look) for look in looks])
    information_K = np.array([design.information(look) for look in looks])
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma_WK = np.sqrt(squares_WK / df_K)
        t_WK = np.where(df_K > 0, means_WK / sigma_WK * np.sqrt(information_K), np.nan)
        if not design.allow_wider:
            return t_WK
        own_K, base_K = np.arange(1, design.most + 1), taken_K + 1
        own_WK = own_squares_WK / (own_K - 1)  # variances
        base_WK = base_squares_WB[:, taken_K] / (base_K - 1)
        a_WK, b_WK = own_WK / own_K, base_WK / base_K
        freedom_WK = (a_WK + b_WK) ** 2 / (a_WK**2 / (own_K - 1) + b_WK**2 / (base_K - 1))
        p_WK = special.stdtr(freedom_WK, -means_WK / np.sqrt(a_WK + b_WK))
        welch_WK = -special.stdtrit(df_K, p_WK)
        wider_WK = special.fdtr(own_K - 1, base_K - 1, own_WK / base_WK) > 0.5
        return np.where(wider_WK & (t_WK > 0) & (welch_WK < t_WK), welch_WK, t_WK)


def _running_moments(values_WN: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squares about it of the first 1, 2, .. values of each row."""
    count_N = np.arange(1, values_WN.shape[1] + 1)
    mean_WN = values_WN.cumsum(axis=1) / count_N
    squares_WN = (values_WN**2).cumsum(axis=1) - count_N * mean_WN**2
    return mean_WN, np.maximum(squares_WN, 0)


def find_ends(edges: Boundary, t_WK: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which worlds keep, which discard, and after how many candidate runs each ends."""
    keep_WK, discard_WK = t_WK >= np.array(edges.keep), t_WK <= np.array(edges.discard)
    stopped_WK = keep_WK | discard_WK
    stopped_WK[:, -1] = True
    last_W = stopped_WK.argmax(axis=1)
    rows_W = np.arange(len(t_WK))
    return keep_WK[rows_W, last_W], discard_WK[rows_W, last_W] & ~keep_WK[rows_W, last_W], last_W + 1
