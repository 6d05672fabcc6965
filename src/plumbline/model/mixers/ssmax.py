"""Implements scalable softmax: scores that are sharpened with the number of keys."""

from __future__ import annotations

from typing import Literal

import torch
from torch.nn.functional import softplus

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.kernels.selection import SDPA
from plumbline.model.mixers._base import Mixer, masked_softmax, widen
from plumbline.model.mixers.softmax import fused_softmax
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec

#: Where the original's scale starts: 1 / mean(log n) for n = 1..1024, neutral on average.
ORIGINAL_SCALE = 0.168


@component
class SSMax(Mixer):
    """weights = softmax(m z), z the scaled scores and m one multiplier per head and row:

    - "multiply": m = s log n, s = softplus(s_logit) + 0.5, s_logit from 0. The formula of the transfer study,
      appendix B.6; it starts 8.27 times sharper than softmax at n = 1024.
    - "divide": m = 1 / (s log n), which the same appendix seems to mean by its temperature; near softmax's at first.
      n is taken as at least 2 here.
    - "original": m = s log n with s itself learned, from 0.168 (Nakanishi 2025).

    `n`: the keys that the query sees, or the training context, with which m is the same in every row. `scores`: z is
    divided by sqrt(d_k), or m stands in its place and z is the plain dot product.
    """

    kernel = SDPA

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        variant: Literal["multiply", "divide", "original"] = "multiply",
        n: Literal["visible", "context"] = "visible",
        scores: Literal["scaled", "plain"] = "scaled",
    ) -> None:
        super().__init__(model, layer)
        if scores == "plain":
            self.scale = 1.0
        self.variant, self.n, self.context = variant, n, model.context
        start = ORIGINAL_SCALE if variant == "original" else 0.0
        self.scale_parameter = parameter(model.heads, role="scalar", layer=layer, init=ConstantInit(value=start))

    def multiplier(self, attention_mask: AttentionMask) -> torch.Tensor:
        """The multiplier m of each row's scores (B or 1, H, Q, 1)."""
        s_H = self.scale_parameter if self.variant == "original" else softplus(self.scale_parameter) + 0.5
        # float32: counts are exact in it, and their logarithm is off by less than 6e-8 of itself (n = 2..1024).
        n_B1Q1 = attention_mask.count_B1Q1(self.n, self.context)
        if self.variant == "divide":
            return 1 / (s_H[:, None, None] * n_B1Q1.clamp(min=2).log())
        return s_H[:, None, None] * n_B1Q1.log()

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Softmax weights of the sharpened scores over the visible keys (B, H, Q, K)."""
        return masked_softmax(self.logits(q_BHQW, k_BGKW, attention_mask), attention_mask)

    def logits(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """The sharpened scores m z (B, H, Q, K)."""
        return self.scores(q_BHQW, k_BGKW) * self.multiplier(attention_mask)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs by torch's fused attention on queries multiplied by m, or in chunks (B, H, Q, W)."""
        if self.kernel_for_call(q_BHQW, attention_mask) != SDPA:
            return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)
        # A multiplier of a row's scores is a multiplier of its query.
        q_BHQW = (widen(q_BHQW) * self.multiplier(attention_mask)).to(q_BHQW.dtype)
        return fused_softmax(q_BHQW, k_BGKW, v_BGKW, attention_mask, self.scale)
