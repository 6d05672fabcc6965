"""Takes W_Q, or W_K or W_V, out of a transformer without changing what it computes: constructions of other weights.

Source: query_free study, Lemma 3.1, Propositions 4.1 and 4.2, Theorems 4.1 to 4.3, Remark 4, and their proofs in
appendices 8.1 and 8.6 (Lemmas 8.5 and 8.6). Rows, X W, as there. All but the two propositions move the stream to
another basis, X Theta, Theta a W_Q: what reads it is divided by Theta on its left, what writes to it is multiplied on
its right by the basis that is wanted after it.

Each function returns new weights, whatever the architecture that they are put in; the premises that an architecture has
to keep are stated with each, and `query_elimination_checks` tries them with and without. The theorems name W_Q; the
abstract says that "one of the Query, Key or Value weights" can go, and the basis may as well be any of the three that
is square and invertible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from .plain_transformer import LayerWeights, ModelWeights

#: (Theta, W) -> Theta^-1 W.
Divide = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: The weights that become I. Those of keys and values are square where no head is shared.
Eliminated = Literal["query_DD", "key_DN", "value_DN"]


def least_squares(theta_DD: np.ndarray, weight_DN: np.ndarray) -> np.ndarray:
    """Theta^+ W, with the pseudo-inverse: what can be done where Theta has no inverse."""
    return np.linalg.pinv(theta_DD) @ weight_DN


def single_head(weights: ModelWeights) -> ModelWeights:
    """Proposition 4.1: W_K <- W_K W_Q^t, W_V <- W_V W_O, W_Q and W_O <- I, in every layer.

    Premises: one head as wide as the stream, and nothing between W_Q and W_K^t (no rotary positions, no QK-norm). Norms
    and skips may be anything; W_Q may be singular.
    """
    layers = tuple(
        replace(
            layer,
            query_DD=_identity(layer.query_DD),
            key_DN=layer.key_DN @ layer.query_DD.T,
            value_DN=layer.value_DN @ layer.output_DD,
            output_DD=_identity(layer.output_DD),
        )
        for layer in weights.layers
    )
    return replace(weights, layers=layers)


def block_diagonal(
    weights: ModelWeights, blocks_HWW: Sequence[np.ndarray], divide: Divide = np.linalg.solve
) -> ModelWeights:
    """Proposition 4.2: W_Q <- W_Q D, W_K <- W_K (D^t)^-1 in every layer, D = diag(D_1, ..., D_H).

    Premises: every D_i is invertible; nothing but the heads' products between W_Q and W_K^t.
    """
    width = blocks_HWW[0].shape[0]
    d_DD = np.zeros_like(weights.layers[0].query_DD)
    for head, block_WW in enumerate(blocks_HWW):
        span = slice(head * width, (head + 1) * width)
        d_DD[span, span] = block_WW
    return query_key_basis(weights, d_DD, divide)


def query_key_basis(weights: ModelWeights, d_DD: np.ndarray, divide: Divide = np.linalg.solve) -> ModelWeights:
    """W_Q <- W_Q D, W_K <- W_K (D^t)^-1, which changes nothing where D is block-diagonal."""
    layers = tuple(
        replace(layer, query_DD=layer.query_DD @ d_DD, key_DN=divide(d_DD, layer.key_DN.T).T)
        for layer in weights.layers
    )
    return replace(weights, layers=layers)


def one_layer(weights: ModelWeights, layer: int, divide: Divide = np.linalg.solve) -> ModelWeights:
    """Theorem 4.1: W_Q of `layer` becomes I; the whole stream is in its basis.

    Premises: no norms, W_Q of that layer invertible. Skips may stand around attention and MLP both. A tied head becomes
    one of its own, Theta^-1 E^t (Remark 4): it stays E~^t only where Theta is orthogonal.
    """
    theta_DD = weights.layers[layer].query_DD
    moved = [_change_basis(block, theta_DD, divide) for block in weights.layers]
    moved[layer] = replace(moved[layer], query_DD=_identity(theta_DD))
    return _change_ends(weights, theta_DD, moved, divide)


def attention_skip_only(
    weights: ModelWeights, divide: Divide = np.linalg.solve, eliminated: Eliminated = "query_DD"
) -> ModelWeights:
    """Theorem 4.2: every W_Q (or `eliminated`) becomes I; layer i reads the stream in the basis of its own W_Q, and its
    MLP writes it in that of the next layer.

    Premises: no norms, no skip around the MLP, every W_Q invertible. A tied head stays tied: after the last layer the
    basis is (Theta_1^t)^-1.
    """
    thetas = [getattr(layer, eliminated) for layer in weights.layers]
    layers = []
    for number, (layer, theta_DD) in enumerate(zip(weights.layers, thetas, strict=True)):
        if number + 1 < len(thetas):
            down_FD = layer.down_FD @ thetas[number + 1]
        elif weights.head_DV is None:
            down_FD = divide(thetas[0], layer.down_FD.T).T
        else:
            down_FD = layer.down_FD
        moved = _change_basis(layer, theta_DD, divide)
        layers.append(replace(moved, **{eliminated: _identity(theta_DD)}, down_FD=down_FD))
    return replace(
        weights,
        embedding_VD=weights.embedding_VD @ thetas[0],
        positions_TD=weights.positions_TD @ thetas[0],
        layers=tuple(layers),
    )


def weight_shared(weights: ModelWeights, divide: Divide = np.linalg.solve) -> ModelWeights:
    """Theorem 4.3: the one W_Q of all layers becomes I.

    Premises: no norms, all layers have the same weights (those of the first are used), W_Q invertible. Skips may stand
    around both. A tied head becomes one of its own, as in `one_layer`.
    """
    theta_DD = weights.layers[0].query_DD
    moved = [replace(_change_basis(layer, theta_DD, divide), query_DD=_identity(theta_DD)) for layer in weights.layers]
    return _change_ends(weights, theta_DD, moved, divide)


def _change_basis(layer: LayerWeights, theta_DD: np.ndarray, divide: Divide) -> LayerWeights:
    """A block on the stream X Theta (Lemma 8.6; with another basis behind its MLP, Lemma 8.5)."""
    return LayerWeights(
        query_DD=divide(theta_DD, layer.query_DD),
        key_DN=divide(theta_DD, layer.key_DN),
        value_DN=divide(theta_DD, layer.value_DN),
        output_DD=layer.output_DD @ theta_DD,
        up_DF=divide(theta_DD, layer.up_DF),
        down_FD=layer.down_FD @ theta_DD,
    )


def _change_ends(
    weights: ModelWeights, theta_DD: np.ndarray, layers: list[LayerWeights], divide: Divide
) -> ModelWeights:
    """Embeddings times Theta, the head divided by it."""
    head_DV = weights.embedding_VD.T if weights.head_DV is None else weights.head_DV
    return ModelWeights(
        embedding_VD=weights.embedding_VD @ theta_DD,
        positions_TD=weights.positions_TD @ theta_DD,
        layers=tuple(layers),
        head_DV=divide(theta_DD, head_DV),
    )


def _identity(like_DD: np.ndarray) -> np.ndarray:
    return np.eye(len(like_DD), dtype=like_DD.dtype)
