"""Implements sigmoid attention, which weighs each key on its own."""

from __future__ import annotations

from typing import Literal

import torch

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.mixers._base import Mixer, cast_for_kernel, mix_values
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Sigmoid(Mixer):
    """weights = sigmoid(z + b) / n ("divided") or sigmoid(z - log n) ("original"), z the scaled scores.

    Source: transfer study, appendix B.5 ("divided": b learned, one per layer, from 0); Ramapuram et al. 2024
    ("original": the bias is fixed and nothing is divided). Divided, no weight ever exceeds 1 / n. `bias` of "divided":
    one b per layer, or one per head; the study says that it is a scalar. `n`: the training context, all keys of the
    call, or the keys that the query sees; the study does not say which. Only the second depends on what follows a
    token.
    """

    kernel = "sigmoid"

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        variant: Literal["divided", "original"] = "divided",
        n: Literal["context", "sequence", "visible"] = "context",
        bias: Literal["layer", "head"] = "layer",
    ) -> None:
        super().__init__(model, layer)
        self.n, self.context = n, model.context
        self.bias = None
        if variant == "divided":
            biases = model.heads if bias == "head" else 1
            self.bias = parameter(biases, role="scalar", layer=layer, init=ConstantInit(value=0.0))

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Sigmoid weights (B, H, Q, K), divided by n where the variant does so."""
        gates_BHQK, divisor_B1Q1 = self._gates(q_BHQW, k_BGKW, attention_mask)
        return gates_BHQK / divisor_B1Q1

    def logits(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """What enters the sigmoid: z + b, or z - log n (B, H, Q, K)."""
        scores_BHQK = self.scores(q_BHQW, k_BGKW)
        if self.bias is None:
            return scores_BHQK - attention_mask.count_B1Q1(self.n, self.context).to(scores_BHQK.dtype).log()
        return scores_BHQK + self.bias[:, None, None]

    def reference(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        """Head outputs from explicit weights (B, H, Q, W).

        It divides head outputs instead of weights: one pass less, and no weight too small for bfloat16.
        """
        gates_BHQK, divisor_B1Q1 = self._gates(q_BHQW, k_BGKW, attention_mask)
        return (mix_values(gates_BHQK, v_BGKW) / divisor_B1Q1).to(v_BGKW.dtype)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs by the Triton kernel where it can run, else in chunks (B, H, Q, W)."""
        if self.kernel_for_call(q_BHQW, attention_mask) != self.kernel:
            return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)
        from plumbline.model.kernels.sigmoid import sigmoid_attention

        bias_H = None if self.bias is None else self.bias.expand(q_BHQW.shape[1])
        count = attention_mask.same_count(self.n, self.context)
        return sigmoid_attention(*cast_for_kernel(q_BHQW, k_BGKW, v_BGKW), bias_H, scale=self.scale, count=count)

    def _gates(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sigmoids, zero where a key is not visible, and what they are divided by."""
        scores_BHQK = self.scores(q_BHQW, k_BGKW)
        bias_B1QK = attention_mask.bias_B1QK(scores_BHQK.dtype)
        n_B1Q1 = attention_mask.count_B1Q1(self.n, self.context).to(scores_BHQK.dtype)
        if self.bias is None:
            return (scores_BHQK + (bias_B1QK - n_B1Q1.log())).sigmoid(), torch.ones_like(n_B1Q1)
        return (scores_BHQK + (bias_B1QK + self.bias[:, None, None])).sigmoid(), n_B1Q1
