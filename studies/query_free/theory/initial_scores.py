"""Computes how far attention scores spread before training, with a learned query and with W_Q = I.

Source: query_free study, appendix 8.2. For weights N(0, sigma^2), H heads of width W in a stream of width D = H W, and
inputs of length |x|, the scores of a head before their division are

    learned query      sigma^2 sqrt(W) |x|^2          (0.0032 printed, for |x| = 1)
    identity query     sigma |x|^2 / sqrt(H)          (0.0058)

so their ratio, 1 / (sigma sqrt(D)), does not depend on |x|, nor on the number of heads. Behind a LayerNorm of unit gain
|x|^2 is D, not 1: scores are D times what the paper prints. The ratio, and with it the divisor 2 that it takes for 1.8,
belongs to D = 768; at D = 2500 it is 1.

Shapes: T tokens, D width, H heads, W head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plumbline.core.errors import PlumblineError


@dataclass(frozen=True, kw_only=True, slots=True)
class InitialScoreSd:
    """Standard deviation of initial scores with a learned query (`standard`), and with W_Q = I (`reduced`)."""

    standard: float
    reduced: float

    @property
    def ratio(self) -> float:
        """Spread of the scores with W_Q = I, relative to that with a learned query."""
        return self.reduced / self.standard

    def divide(self, divisor: float) -> InitialScoreSd:
        """The spread after scores were divided by `divisor`, such as sqrt(W)."""
        return InitialScoreSd(standard=self.standard / divisor, reduced=self.reduced / divisor)


def expect_spread(*, width: int, heads: int, init_std: float, length: float) -> InitialScoreSd:
    """The spread by the formulas, for inputs of the given `length`: 1 in the paper, sqrt(D) behind a LayerNorm."""
    head_width = _head_width(width, heads)
    return InitialScoreSd(
        standard=init_std**2 * math.sqrt(head_width) * length**2, reduced=init_std * length**2 / math.sqrt(heads)
    )


def measure_spread(
    *, width: int, heads: int, init_std: float, length: float, tokens: int = 64, seed: int = 0
) -> InitialScoreSd:
    """The spread of drawn weights and inputs, over all heads and pairs of tokens; each input has the given `length`."""
    head_width = _head_width(width, heads)
    draw = np.random.default_rng(seed)
    x_TD = draw.standard_normal((tokens, width))
    x_TD *= length / np.linalg.norm(x_TD, axis=1, keepdims=True)
    query_DD, key_DD = (init_std * draw.standard_normal((width, width)) for _ in range(2))
    keys_THW = (x_TD @ key_DD).reshape(tokens, heads, head_width)

    def spread(queries_TD: np.ndarray) -> float:
        queries_THW = queries_TD.reshape(tokens, heads, head_width)
        return float(np.einsum("qhw,khw->hqk", queries_THW, keys_THW).std())

    return InitialScoreSd(standard=spread(x_TD @ query_DD), reduced=spread(x_TD))


def _head_width(width: int, heads: int) -> int:
    if width % heads:
        raise PlumblineError(f"initial_scores: a width of {width} cannot be cut into {heads} heads; use a multiple")
    return width // heads
