"""Calls a package of flash-attention (flash-attn 3 or flash-attn) for causal softmax attention.

Both lay a sequence's heads next to each other, (B, T, H, W), which is how projections leave them, so that transposing
is a view; both group query heads with keys and values by themselves. Their weights are torch's up to rounding; their
backward passes add up the queries' gradient in no fixed order unless deterministic algorithms are asked of torch.
"""

from __future__ import annotations

import torch

from plumbline.model.kernels.selection import FLASH_ATTN_3, find_flash_packages


def flash_softmax(q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, v_BGTW: torch.Tensor, scale: float) -> torch.Tensor:
    """Causal softmax attention (B, H, T, W) of queries, keys and values of one half-precision type."""
    if find_flash_packages()[0] == FLASH_ATTN_3:
        from flash_attn_interface import flash_attn_func
    else:
        from flash_attn import flash_attn_func

    result = flash_attn_func(
        q_BHTW.transpose(1, 2),
        k_BGTW.transpose(1, 2),
        v_BGTW.transpose(1, 2),
        softmax_scale=scale,
        causal=True,
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )
    # The first releases of flash-attn 3 return sums of exponentials too.
    o_BTHW = result[0] if isinstance(result, tuple) else result
    return o_BTHW.transpose(1, 2)
