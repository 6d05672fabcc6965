"""Implements softmax attention over clamped scores."""

from __future__ import annotations

import torch

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.mixers._base import Mixer, cast_for_kernel, masked_softmax
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class SoftmaxCap(Mixer):
    """weights = softmax(clamp(z, -cap, cap)), z the scaled scores.

    Source: transfer study, appendix B.13: a hard clip at +-50. Equal to softmax while all |z| < cap. A score outside
    gets no gradient, so that a head whose scores have left the range is not called back. (The cap of flash attention's
    own kernels is another function, cap tanh(z / cap), and none of these weights.)
    """

    kernel = "bounded"

    def __init__(self, model: ModelSpec, layer: int, *, cap: float = 50.0) -> None:
        super().__init__(model, layer)
        self.cap = cap

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Softmax weights of the clamped scores over the visible keys (B, H, Q, K)."""
        return masked_softmax(self.scores(q_BHQW, k_BGKW).clamp(-self.cap, self.cap), attention_mask)

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
        from plumbline.model.kernels.bounded import bounded_softmax

        return bounded_softmax(*cast_for_kernel(q_BHQW, k_BGKW, v_BGKW), scale=self.scale, cap=self.cap)
