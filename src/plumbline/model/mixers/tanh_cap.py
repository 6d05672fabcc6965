"""Implements softmax attention over scores that a tanh bounds."""

from __future__ import annotations

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.mixers._base import Mixer, masked_softmax
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class TanhCap(Mixer):
    """weights = softmax(cap tanh(z / cap)), z the scaled scores.

    Source: Gemma 2 (2024), whose cap is 50 as well. Scores near 0 are left as they are, and no score is beyond the cap;
    what distinguishes it from `softmax_cap` is that a score outside the range still gets a gradient, cosh(z / cap)^-2.

    Raises:
        PlumblineError: the cap is not above 0.
    """

    def __init__(self, model: ModelSpec, layer: int, *, cap: float = 50.0) -> None:
        super().__init__(model, layer)
        if cap <= 0:
            raise PlumblineError(f"model.mixer.cap ({cap:g}) must be above 0")
        self.cap = cap

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Softmax weights of the bounded scores over the visible keys (B, H, Q, K)."""
        return masked_softmax(self.cap * (self.scores(q_BHQW, k_BGKW) / self.cap).tanh(), attention_mask)
