"""Computes how far one gradient step on a head's queries and keys can move its scores on chosen residual directions.

Source: premature study, section 6 and appendix B (Theorem 1, Eqs. 13-20; Corollaries 1 to 3, Eqs. 31-38; Theorem 3,
Eqs. 56-59). A head without positions and biases, in float64:

    Z = X W_Q W_K^T X^T / sqrt(W),   E = dL/dZ,   W_S <- W_S - eta_S dL/dW_S,   X_P = X P, P an orthogonal projector,
    dZ_P = X_P (W_Q' W_K'^T - W_Q W_K^T) X_P^T / sqrt(W), exact in every order of eta.

Shapes: T tokens, D width of the stream, W width of the head, R rank of the projector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True, kw_only=True)
class DirectedHead:
    """A head as Theorem 1 describes it, with the residual directions that it is about.

    Attributes:
        x_TD: the stream that it reads.
        query_DW, key_DW: W_Q and W_K.
        adjoint_TT: E = dL/dZ, the gradient of the loss by the scores.
        basis_DR: orthonormal columns that span the chosen directions, P = basis basis^T.
    """

    x_TD: np.ndarray
    query_DW: np.ndarray
    key_DW: np.ndarray
    adjoint_TT: np.ndarray
    basis_DR: np.ndarray

    @property
    def width(self) -> int:
        """Width W of the head."""
        return self.query_DW.shape[1]

    @cached_property
    def chosen_TR(self) -> np.ndarray:
        """X_P in the basis of P: the norms of X P, and its products with anything to which P has been applied."""
        return self.x_TD @ self.basis_DR

    @property
    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """The gradients dL/dW_Q and dL/dW_K (D, W), Eq. 16."""
        x, root = self.x_TD, math.sqrt(self.width)
        query = x.T @ (self.adjoint_TT @ (x @ self.key_DW)) / root
        key = x.T @ (self.adjoint_TT.T @ (x @ self.query_DW)) / root
        return query, key

    def score_change(self, query_rate: float, key_rate: float) -> np.ndarray:
        """Change dZ_P (T, T) of the scores by one step, Eq. 18."""
        query, key = self.gradients
        p = self.basis_DR
        new = (p.T @ (self.query_DW - query_rate * query)) @ (p.T @ (self.key_DW - key_rate * key)).T
        old = (p.T @ self.query_DW) @ (p.T @ self.key_DW).T
        return self.chosen_TR @ (new - old) @ self.chosen_TR.T / math.sqrt(self.width)

    def landing(self, weight_DW: np.ndarray) -> float:
        """|X W W^T P|_F: how much of a weight's quadratic form lies in the chosen directions."""
        return float(np.linalg.norm((self.x_TD @ weight_DW) @ (weight_DW.T @ self.basis_DR)))

    def locality(self, weight_DW: np.ndarray) -> float:
        """Locality lambda of Eq. 33 for this head: |X W W^T P|_F / (|X_P|_F |W|_op^2)."""
        return self.landing(weight_DW) / (frobenius(self.chosen_TR) * operator(weight_DW) ** 2)

    @property
    def energy(self) -> float:
        """Energy R_P = |X_P|_F^2 of the stream in the chosen directions."""
        return frobenius(self.chosen_TR) ** 2

    def bound(self, query_rate: float, key_rate: float) -> float:
        """Theorem 1's bound on |dZ_P|_F, its second-order remainder included (Eqs. 19 and 20)."""
        rates = query_rate * self.landing(self.key_DW) + key_rate * self.landing(self.query_DW)
        return self._common_factor * frobenius(self.chosen_TR) * rates + self.remainder(query_rate, key_rate)

    def unconditional_bound(self, query_rate: float, key_rate: float) -> float:
        """Corollary 1's bound on |dZ_P|_F (Eq. 32), which takes |X|_F |W|_op^2 as the upper limit of `landing`."""
        rates = query_rate * operator(self.key_DW) ** 2 + key_rate * operator(self.query_DW) ** 2
        whole = self._common_factor * frobenius(self.chosen_TR) * frobenius(self.x_TD) * rates
        return whole + self.remainder(query_rate, key_rate)

    def bound_by_localisation(self, query_rate: float, key_rate: float) -> float:
        """Corollary 2's bound on |dZ_P|_F with |X_P|_op <= |X_P|_F (Eqs. 34 and 35), which is quadratic in R_P.

        The locality of keys multiplies the rate of queries, and the reverse.
        """
        rates = query_rate * self.locality(self.key_DW) * operator(self.key_DW) ** 2
        rates += key_rate * self.locality(self.query_DW) * operator(self.query_DW) ** 2
        return operator(self.adjoint_TT) * rates * self.energy**2 / self.width + self.remainder(query_rate, key_rate)

    def remainder(self, query_rate: float, key_rate: float) -> float:
        """Second-order remainder R_2 of the bounds (Eq. 20)."""
        products = frobenius(self.x_TD @ self.key_DW) * frobenius(self.x_TD @ self.query_DW)
        together = query_rate * key_rate * self._common_factor * operator(self.adjoint_TT) * self.energy
        return together * products / math.sqrt(self.width)

    @cached_property
    def _common_factor(self) -> float:
        """|X_P|_op^2 |E|_op / W."""
        return operator(self.chosen_TR) ** 2 * operator(self.adjoint_TT) / self.width

    def weaken(self, energy_factor: float) -> DirectedHead:
        """The same head with R_P multiplied by `energy_factor`: only what lies in the chosen directions shrinks."""
        inside_TD = self.chosen_TR @ self.basis_DR.T
        return replace(self, x_TD=self.x_TD + (math.sqrt(energy_factor) - 1) * inside_TD)

    def restrict_to_chosen(self) -> DirectedHead:
        """The same head on a stream that lies in the chosen directions alone."""
        return replace(self, x_TD=self.chosen_TR @ self.basis_DR.T)


def frobenius(matrix: np.ndarray) -> float:
    """Frobenius norm |A|_F."""
    return float(np.linalg.norm(matrix))


def operator(matrix: np.ndarray) -> float:
    """Operator norm |A|_op, the largest singular value."""
    return float(np.linalg.norm(matrix, 2))


def suppression(head: DirectedHead, multiplier: float, rate: float) -> float:
    """Ratio of |dZ_P| at `multiplier` times the rate to |dZ_P| at the rate.

    It is `multiplier` + O(rate), by Corollary 3.
    """
    slow, whole = (frobenius(head.score_change(r, r)) for r in (multiplier * rate, rate))
    return slow / whole


def power(head: DirectedHead, energy_factor: float, rate: float) -> float:
    """The power of the energy R_P by which the step shrinks: log of the shrinkage of |dZ_P| over log of
    `energy_factor`.

    Theorem 3 gives 2 where the adjoint and the locality constants stay; they do where the stream lies in the chosen
    directions alone. With a larger rest of the stream only three of the four factors X_P are left, and it is 3/2.
    """
    before, after = (frobenius(variant.score_change(rate, rate)) for variant in (head, head.weaken(energy_factor)))
    return math.log(after / before) / math.log(energy_factor)


def causal_adjoint(scores_TT: np.ndarray, upstream_TT: np.ndarray) -> np.ndarray:
    """dL/dZ through a causal softmax by rows, from dL/dA: A * (dL/dA - sum_j A dL/dA)."""
    weights = causal_softmax(scores_TT)
    return weights * (upstream_TT - (weights * upstream_TT).sum(axis=1, keepdims=True))


def causal_softmax(scores_TT: np.ndarray) -> np.ndarray:
    """Attention weights (T, T) of causal scores, row by row."""
    masked = np.where(np.tri(len(scores_TT), dtype=bool), scores_TT, -np.inf)
    weights = np.exp(masked - masked.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def sharp_head(tokens: int, width: int, head_width: int) -> DirectedHead:
    """A head for which Theorem 1's bound is an equality to first order: everything is of rank one, and aligned."""
    u_D, a_W = np.ones(width) / math.sqrt(width), np.ones(head_width) / math.sqrt(head_width)
    x_T = np.linspace(1.0, 2.0, tokens)
    weight_DW = np.outer(u_D, a_W)
    adjoint_TT = np.outer(x_T, x_T) / (x_T @ x_T)
    return DirectedHead(
        x_TD=np.outer(x_T, u_D), query_DW=weight_DW, key_DW=weight_DW, adjoint_TT=adjoint_TT, basis_DR=u_D[:, None]
    )


def random_head(
    seed: int, *, tokens: int, width: int, head_width: int, rank: int, init_std: float, sharpness: float = 1.0
) -> DirectedHead:
    """A head with a layer-normalised stream, weights N(0, (`init_std` x `sharpness`)^2) and a softmax adjoint."""
    draw = np.random.default_rng(seed)
    x_TD = draw.standard_normal((tokens, width))
    x_TD = (x_TD - x_TD.mean(axis=1, keepdims=True)) / x_TD.std(axis=1, keepdims=True)
    query_DW, key_DW = (init_std * sharpness * draw.standard_normal((width, head_width)) for _ in range(2))
    values_TW, upstream_TW = (draw.standard_normal((tokens, head_width)) for _ in range(2))
    scores_TT = (x_TD @ query_DW) @ (x_TD @ key_DW).T / math.sqrt(head_width)
    basis_DR = np.linalg.qr(draw.standard_normal((width, rank)))[0]
    adjoint_TT = causal_adjoint(scores_TT, upstream_TW @ values_TW.T / tokens)
    return DirectedHead(x_TD=x_TD, query_DW=query_DW, key_DW=key_DW, adjoint_TT=adjoint_TT, basis_DR=basis_DR)
