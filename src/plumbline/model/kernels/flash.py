"""Calls the package flash-attn for causal softmax attention.

It lays a sequence's heads next to each other, (B, T, H, W), which is how projections leave them, so that transposing is
a view; it groups query heads with keys and values by itself. Its weights are torch's up to rounding; its backward pass
adds up the queries' gradient in no fixed order unless deterministic algorithms are asked of torch.
"""

from __future__ import annotations

import torch


def flash_softmax(q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, v_BGTW: torch.Tensor, scale: float) -> torch.Tensor:
    """Causal softmax attention (B, H, T, W) of queries, keys and values of one half-precision type."""
    from flash_attn import flash_attn_func

    o_BTHW = flash_attn_func(
        q_BHTW.transpose(1, 2),
        k_BGTW.transpose(1, 2),
        v_BGTW.transpose(1, 2),
        dropout_p=0.0,
        softmax_scale=scale,
        causal=True,
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )
    return o_BTHW.transpose(1, 2)
