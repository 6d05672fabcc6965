"""Implements softmax attention: the baseline."""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.kernels.selection import FLASH_ATTN, SDPA, choose_fused_kernel
from plumbline.model.mixers._base import Mixer, cast_for_kernel, kernel_type, masked_softmax
from plumbline.specs.components import component

#: Queries that one call handles where a mask hides later keys: torch's kernel on a CPU computes what is hidden too.
SPAN = 32


@component
class Softmax(Mixer):
    """weights = softmax(q k / sqrt(head width)) over the visible keys."""

    kernel = SDPA

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Softmax weights over the visible keys (B, H, Q, K)."""
        return masked_softmax(self.scores(q_BHQW, k_BGKW), attention_mask)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs by fused attention, unless the reference is asked for (B, H, Q, W)."""
        if self.kernel_for_call(q_BHQW, attention_mask) != SDPA:
            return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)
        return fused_softmax(q_BHQW, k_BGKW, v_BGKW, attention_mask, self.scale)


def fused_softmax(
    q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask, scale: float
) -> torch.Tensor:
    """Softmax attention by a fused kernel (B, H, Q, W), grouped keys and values included: torch's, or flash-attn's
    where it is installed and takes the call.
    """
    dtype, width = kernel_type(q_BHQW, k_BGKW, v_BGKW), q_BHQW.shape[-1]
    if choose_fused_kernel(q_BHQW.device.type, dtype, width, plain=attention_mask.plain) == FLASH_ATTN:
        from plumbline.model.kernels.flash import flash_softmax

        return flash_softmax(*cast_for_kernel(q_BHQW, k_BGKW, v_BGKW), scale)
    queries = q_BHQW.shape[2]
    if not attention_mask.triangular or q_BHQW.device.type != "cpu" or torch.is_grad_enabled():
        return _attend_by_torch(q_BHQW, k_BGKW, v_BGKW, attention_mask, scale)
    spans = [(start, min(start + SPAN, queries)) for start in range(0, queries, SPAN)]
    parts = [
        _attend_by_torch(
            q_BHQW[:, :, start:stop], k_BGKW[:, :, :stop], v_BGKW[:, :, :stop], attention_mask.rows(start, stop), scale
        )
        for start, stop in spans
    ]
    return torch.cat(parts, dim=2)


def _attend_by_torch(
    q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask, scale: float
) -> torch.Tensor:
    mask = None if attention_mask.plain else attention_mask.kernel_mask_B1QK(kernel_type(q_BHQW, k_BGKW, v_BGKW))
    grouped = q_BHQW.shape[1] != k_BGKW.shape[1]
    return scaled_dot_product_attention(
        q_BHQW, k_BGKW, v_BGKW, attn_mask=mask, is_causal=attention_mask.plain, scale=scale, enable_gqa=grouped
    )
