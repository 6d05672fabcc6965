"""Computes what two factors do together beyond their sum, and on which main effects that falls (its aliases).

An interaction of two levels is what a run that has both gains beyond the sum of their effects. In a screen few of them
can be estimated; half of one is part of each of its two effects (an effect is an average over the other factor), and
where its runs are not told apart from those of a third effect it falls on that one too, by half at most (Box, Hunter
and Hunter, Statistics for Experimenters, 2005).

Shapes: N runs, F factors, P parameters (the mean first), I interactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from plumbline.stats.d_optimal_design import FactorSpace
from plumbline.stats.factor_effects import invert_model

#: A column of which less than this share is outside the main effects cannot be estimated.
SEEN = 1e-6


@dataclass(frozen=True)
class InteractionColumns:
    """Every pair of levels of two factors, as columns next to those of the model.

    Attributes:
        pairs: (I, 2), places in `FactorSpace.columns`.
        z_NI: products of the two levels, each less its share of a balanced design.
        alias_PI: how much of an interaction is added to the mean and to each effect, beyond the half that its two
            effects share.
        rest_NI: what of an interaction is outside all main effects.
    """

    pairs: np.ndarray
    z_NI: np.ndarray
    alias_PI: np.ndarray
    rest_NI: np.ndarray

    @property
    def is_estimable(self) -> np.ndarray:
        """Whether anything of each interaction is outside the main effects."""
        squares = np.einsum("ni,ni->i", self.z_NI, self.z_NI)
        rest_squares = np.einsum("ni,ni->i", self.rest_NI, self.rest_NI)
        return np.asarray(rest_squares > SEEN * np.maximum(squares, SEEN))

    def group_equal(self) -> list[list[int]]:
        """Group the interactions that can be seen by those that no run tells apart."""
        places = np.flatnonzero(self.is_estimable)
        directions_NI = self.rest_NI[:, places] / np.linalg.norm(self.rest_NI[:, places], axis=0)
        first_I = (np.abs(directions_NI) > 1e-4).argmax(axis=0)
        signs_I = np.sign(directions_NI[first_I, np.arange(len(places))])
        keys_IN = ((directions_NI * signs_I).round(5) + 0.0).T
        groups: dict[bytes, list[int]] = {}
        for place, key_N in zip(places.tolist(), keys_IN):
            groups.setdefault(key_N.tobytes(), []).append(place)
        return list(groups.values())


def make_interactions(space: FactorSpace, levels_NF: np.ndarray) -> InteractionColumns:
    """Make the columns of all interactions of two levels of different factors."""
    x_NP, columns = space.model_matrix(levels_NF), space.columns
    shares = np.array([1 / space.sizes[factor] for factor, _ in columns])
    centered_NQ = x_NP[:, 1:] - shares
    pairs = np.array(
        [pair for pair in combinations(range(len(columns)), 2) if columns[pair[0]][0] != columns[pair[1]][0]],
        dtype=int,
    ).reshape(-1, 2)
    z_NI = centered_NQ[:, pairs[:, 0]] * centered_NQ[:, pairs[:, 1]]
    alias_PI = invert_model(x_NP)[0] @ (x_NP.T @ z_NI)
    return InteractionColumns(pairs, z_NI, alias_PI, z_NI - x_NP @ alias_PI)


@dataclass(frozen=True)
class InteractionTests:
    """What each group of interactions that no run tells apart gains, tested by itself next to all main effects.

    Attributes:
        groups: places of the interactions of each group; the estimate is of the first, as if the others were nothing.
        gains, errors: what both levels gain beyond their sum, and its standard error.
        p_values: two-sided, by t with one degree of freedom less than the residuals have.
    """

    groups: list[list[int]]
    gains: np.ndarray
    errors: np.ndarray
    p_values: np.ndarray


def estimate_interactions(columns: InteractionColumns, residuals_N: np.ndarray, df: int) -> InteractionTests:
    """Test each interaction as one more column of the model; nothing is tested with fewer than two residuals."""
    groups = columns.group_equal() if df > 1 else []
    if not groups:
        return InteractionTests([], *(np.empty(0) for _ in range(3)))
    rest_NI = columns.rest_NI[:, [group[0] for group in groups]]
    squares_I = np.einsum("ni,ni->i", rest_NI, rest_NI)
    gains_I = residuals_N @ rest_NI / squares_I
    left_I = np.maximum(0.0, residuals_N @ residuals_N - gains_I**2 * squares_I)
    errors_I = np.sqrt(left_I / (df - 1) / squares_I)
    with np.errstate(divide="ignore", invalid="ignore"):
        t_I = np.where(gains_I == 0, 0.0, np.abs(gains_I) / errors_I)
    return InteractionTests(groups, gains_I, errors_I, np.minimum(1.0, 2 * special.stdtr(df - 1, -t_I)))
