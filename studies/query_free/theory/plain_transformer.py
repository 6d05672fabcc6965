"""Computes a transformer as the query_free study writes it down, in numpy, to check its theorems on.

Source: query_free study, sections 3.1 and 4 (Eqs. 2 and 3), appendix 8.1. Its convention is kept: a token is a *row*,
and a weight stands to its right, X W (this package's own modules keep the transpose). It shares no code with
`plumbline.model`. Arithmetic is in the type of the weights.

Shapes: B sequences, T tokens, D width, H heads, G heads of keys and values, W = D / H, N = G W, F width of the MLP, V
vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special


def gelu(x: np.ndarray | float) -> np.ndarray | float:
    """GELU in its exact (erf) form: x Phi(x)."""
    return x * special.ndtr(x)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerWeights:
    """The weights of one block: W_Q, W_K, W_V, W_O, W_up, W_down."""

    query_DD: np.ndarray
    key_DN: np.ndarray
    value_DN: np.ndarray
    output_DD: np.ndarray
    up_DF: np.ndarray
    down_FD: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelWeights:
    """The weights of a model: E, E_P, the blocks and W_head. `head_DV` is None if the head is tied, E^t."""

    embedding_VD: np.ndarray
    positions_TD: np.ndarray
    layers: tuple[LayerWeights, ...]
    head_DV: np.ndarray | None

    @property
    def width(self) -> int:
        """Width D of the stream."""
        return self.embedding_VD.shape[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """The architecture that a model's weights are used in.

    `ffn_skip`: whether the MLP has a skip connection, as attention always has. `norm`: LayerNorm before attention,
    before the MLP and before the head; without a gain, which can be merged into the next matrix. `rotary` positions and
    `qk_norm` act on each head's queries and keys (RMS, no gain; before positions).
    """

    heads: int
    groups: int
    causal: bool = True
    ffn_skip: bool = True
    norm: bool = False
    rotary: bool = False
    qk_norm: bool = False
    activation: Callable[[Any], Any] = gelu


def forward(weights: ModelWeights, tokens_BT: np.ndarray, form: Architecture) -> np.ndarray:
    """Compute the model's logits (B, T, V)."""
    normed = layer_norm if form.norm else _as_it_is
    x_BTD = weights.embedding_VD[tokens_BT] + weights.positions_TD[: tokens_BT.shape[1]]
    for layer in weights.layers:
        x_BTD = x_BTD + attention(normed(x_BTD), layer, form) @ layer.output_DD
        ffn_BTD = form.activation(normed(x_BTD) @ layer.up_DF) @ layer.down_FD
        x_BTD = x_BTD + ffn_BTD if form.ffn_skip else ffn_BTD
    head_DV = weights.embedding_VD.T if weights.head_DV is None else weights.head_DV
    return normed(x_BTD) @ head_DV


def attention(x_BTD: np.ndarray, layer: LayerWeights, form: Architecture) -> np.ndarray:
    """The self-attention product S_c (B, T, D): heads side by side, before W_O (section 3.1, Eq. 4)."""
    q_BHTW = _heads(x_BTD @ layer.query_DD, form.heads)
    k_BHTW, v_BHTW = (
        _heads(x_BTD @ weight, form.groups).repeat(form.heads // form.groups, axis=1)
        for weight in (layer.key_DN, layer.value_DN)
    )
    if form.qk_norm:
        q_BHTW, k_BHTW = rms_norm(q_BHTW), rms_norm(k_BHTW)
    if form.rotary:
        q_BHTW, k_BHTW = rotate(q_BHTW), rotate(k_BHTW)
    scores_BHTT = q_BHTW @ k_BHTW.swapaxes(-1, -2) / math.sqrt(q_BHTW.shape[-1])
    if form.causal:
        scores_BHTT = np.where(np.tri(scores_BHTT.shape[-1], dtype=bool), scores_BHTT, -np.inf)
    shares_BHTT = np.exp(scores_BHTT - scores_BHTT.max(axis=-1, keepdims=True))
    out_BHTW = (shares_BHTT / shares_BHTT.sum(axis=-1, keepdims=True)).astype(x_BTD.dtype) @ v_BHTW
    return out_BHTW.swapaxes(1, 2).reshape(x_BTD.shape)


def layer_norm(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """LayerNorm over the last dimension without gain or bias: Eq. 1 with gamma = 1."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + x.dtype.type(eps))


def rms_norm(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Divide x by its root mean square over the last dimension."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + x.dtype.type(eps))


def rotate(x_BHTW: np.ndarray) -> np.ndarray:
    """Apply rotary positions: coordinate i is rotated with i + W / 2 by position * 10000^(-2i / W)."""
    tokens, half = x_BHTW.shape[-2], x_BHTW.shape[-1] // 2
    angles_TW = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles_TW).astype(x_BHTW.dtype), np.sin(angles_TW).astype(x_BHTW.dtype)
    first, second = x_BHTW[..., :half], x_BHTW[..., half:]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def draw_weights(
    seed: int,
    *,
    layers: int,
    heads: int,
    groups: int,
    head_width: int,
    context: int,
    tied: bool,
    shared: bool = False,
    dtype: Any = np.float64,
) -> ModelWeights:
    """Draw random weights: every matrix N(0, 1 / rows), embeddings N(0, 1), F = 2 D, V = 3 D.

    Args:
        shared: one block for all layers.
    """
    draw = np.random.default_rng(seed)
    width = heads * head_width

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (draw.standard_normal((rows, columns)) / math.sqrt(rows)).astype(dtype)

    def block() -> LayerWeights:
        return LayerWeights(
            query_DD=matrix(width, width),
            key_DN=matrix(width, groups * head_width),
            value_DN=matrix(width, groups * head_width),
            output_DD=matrix(width, width),
            up_DF=matrix(width, 2 * width),
            down_FD=matrix(2 * width, width),
        )

    blocks = (block(),) * layers if shared else tuple(block() for _ in range(layers))
    embedding_VD = draw.standard_normal((3 * width, width)).astype(dtype)
    return ModelWeights(
        embedding_VD=embedding_VD,
        positions_TD=draw.standard_normal((context, width)).astype(dtype),
        layers=blocks,
        head_DV=None if tied else matrix(width, 3 * width),
    )


def with_query(weights: ModelWeights, queries: list[np.ndarray]) -> ModelWeights:
    """The same weights with other matrices W_Q, one per layer."""
    layers = tuple(replace(layer, query_DD=query) for layer, query in zip(weights.layers, queries, strict=True))
    return replace(weights, layers=layers)


def relative_difference(result: np.ndarray, stated: np.ndarray) -> float:
    """Relative difference |found - stated|_F / |stated|_F."""
    return float(np.linalg.norm((result - stated).ravel()) / np.linalg.norm(stated.ravel()))


def _heads(x_BTN: np.ndarray, heads: int) -> np.ndarray:
    """(B, T, H W) -> (B, H, T, W)."""
    return x_BTN.reshape(*x_BTN.shape[:2], heads, -1).swapaxes(1, 2)


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x
