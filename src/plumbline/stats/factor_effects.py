"""Estimates the effects of factors by least squares, their standard errors, and whether crashes follow a level.

Box, Hunter and Hunter (Statistics for Experimenters, 2005): in an orthogonal design an effect is the difference of two
means. Runs that were lost leave the model; an effect that the others cannot tell apart is NaN, and the rest stands.

Shapes: W worlds (sets of values of one design), N runs, P parameters (the mean first), M past runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

#: Residuals that spread wider than past runs at this p are not pooled with them. A laxer level protects from little,
#: and costs much where a design leaves few residuals: .25 finds 3.4 of six gains of 1 sigma where .01 finds 4.4 (60
#: ideas, 64 runs).
WIDER_LEVEL = 0.01


@dataclass(frozen=True)
class EffectFit:
    """Least squares of one design.

    Attributes:
        effects_WP: the mean of the baseline and the effects, in units of the values; NaN if not estimable.
        unit_errors_P: standard errors for a sigma of 1; NaN if not estimable.
        residuals_WN: values less what the model says.
        df: runs less what the model took.
        inverse_PP: of the information.
    """

    effects_WP: np.ndarray
    unit_errors_P: np.ndarray
    residuals_WN: np.ndarray
    df: int
    inverse_PP: np.ndarray

    @property
    def squares_W(self) -> np.ndarray:
        """Sums of squared residuals."""
        return np.asarray(np.einsum("wn,wn->w", self.residuals_WN, self.residuals_WN))


def invert_model(x_NP: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The (pseudo-)inverse of the information X'X, which parameters the runs do not tell apart, and the rank of X."""
    sizes_P, vectors_PP = np.linalg.eigh(x_NP.T @ x_NP)
    there_P = sizes_P > max(sizes_P.max(initial=0.0), 1.0) * 1e-10
    tied_P = (np.abs(vectors_PP[:, ~there_P]) > 1e-6).any(axis=1)
    inverse_PP = (vectors_PP[:, there_P] / sizes_P[there_P]) @ vectors_PP[:, there_P].T
    return inverse_PP, tied_P, int(there_P.sum())


def fit_effects(x_NP: np.ndarray, values_WN: np.ndarray) -> EffectFit:
    """Fit the model; what the runs do not tell apart is NaN, and does not move what they do."""
    values_WN = np.atleast_2d(np.asarray(values_WN, dtype=float))
    # Values about their mean, so that large ones lose no digits; the mean is the model's first column.
    center_W1 = values_WN.mean(axis=1, keepdims=True)
    inverse_PP, tied_P, rank = invert_model(x_NP)
    effects_WP = (values_WN - center_W1) @ x_NP @ inverse_PP
    residuals_WN = (values_WN - center_W1) - effects_WP @ x_NP.T
    effects_WP[:, :1] += center_W1
    effects_WP[:, tied_P] = math.nan
    errors_P = np.sqrt(np.diag(inverse_PP))
    return EffectFit(effects_WP, np.where(tied_P, math.nan, errors_P), residuals_WN, len(x_NP) - rank, inverse_PP)


@dataclass(frozen=True)
class PooledSigma:
    """Sigma of one run in each world, its degrees of freedom, and whether past runs are in it."""

    sigma_W: np.ndarray
    df_W: np.ndarray
    with_past_W: np.ndarray


def pool_residuals(squares_W: np.ndarray, df: int, past_WM: np.ndarray) -> PooledSigma:
    """Pool the spread of residuals with that of past runs of one arm, unless residuals spread much wider.

    By a one-sided F test at `WIDER_LEVEL`: interactions and drift widen the residuals, and a baseline that does not
    spread at all would have what does nothing chosen. NaN if neither has a degree of freedom.
    """
    past_df = max(0, past_WM.shape[1] - 1)
    past_W = past_WM.var(axis=1, ddof=1) if past_df else np.zeros(len(squares_W))
    if not df:
        sigma_W = np.sqrt(past_W) if past_df else np.full(len(squares_W), math.nan)
        return PooledSigma(sigma_W, np.full(len(squares_W), past_df), np.full(len(squares_W), past_df > 0))
    if past_df:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio_W = np.where(past_W > 0, squares_W / df / past_W, np.inf)
        crosses_W = special.fdtrc(df, past_df, ratio_W) > WIDER_LEVEL
    else:
        crosses_W = np.zeros(len(squares_W), dtype=bool)
    df_W = df + past_df * crosses_W
    sigma_W = np.sqrt((squares_W + past_df * past_W * crosses_W) / df_W)
    return PooledSigma(sigma_W, df_W, crosses_W)


def p_of_gains(effects_W: np.ndarray, errors_W: np.ndarray, df_W: np.ndarray | float) -> np.ndarray:
    """One-sided p that effects are above 0, by t; NaN stays NaN, and without any spread the sign decides."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t_W = np.where(effects_W == 0, 0.0, effects_W / errors_W)
    p_W = special.stdtr(df_W, -t_W)
    return np.asarray(np.where(np.isnan(effects_W) | np.isnan(errors_W), math.nan, p_W))


def trend_p(x_NP: np.ndarray, fit: EffectFit, order: Sequence[int]) -> float:
    """Two-sided p that residuals rise or fall with the order of the runs: one more column of the model, by t.

    NaN where fewer than two degrees of freedom are left, or the model takes the order up wholly.
    """
    time_N = np.asarray(order, dtype=float)
    time_N = time_N - time_N.mean()
    rest_N, residuals_N, df = time_N - x_NP @ (fit.inverse_PP @ (x_NP.T @ time_N)), fit.residuals_WN[0], fit.df
    squares = float(rest_N @ rest_N)
    if df < 2 or squares < 1e-9 * float(time_N @ time_N):
        return math.nan
    slope = float(residuals_N @ rest_N) / squares
    variance = max(0.0, float(residuals_N @ residuals_N) - slope**2 * squares) / (df - 1)
    if not slope or not variance:
        return 0.0 if slope else 1.0
    return float(2 * special.stdtr(df - 1, -abs(slope) / math.sqrt(variance / squares)))


def p_of_crashes(crashed_with: int, runs_with: int, crashed: int, runs: int) -> float:
    """Chance that so many crashes or more fall on a level's runs where crashes do not ask for it.

    Fisher's exact test, one-sided: of `runs` with `crashed` crashes, `runs_with` have the level.
    """
    ways = sum(
        math.comb(runs_with, hits) * math.comb(runs - runs_with, crashed - hits)
        for hits in range(crashed_with, min(runs_with, crashed) + 1)
    )
    return ways / math.comb(runs, crashed)
