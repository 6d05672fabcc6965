"""Stands in for `plumbline.model.kernels.selection` in an exported folder: no kernels come with it, so that it needs no
Triton.

Mixers that torch's fused attention cannot compute make explicit weights, some queries at a time, on every device.
"""

from __future__ import annotations

from typing import Any

AttentionMode = str
CHUNKED = "chunked"
SDPA = "sdpa"
FLASH_ATTN = "flash_attn"


def choose_kernel(
    kernel: str | None, device: str, dtype: Any, *, plain: bool = True, mode: AttentionMode = "auto"
) -> str:
    """Return the kernel that a call runs through: torch's fused attention if it can compute it, else `CHUNKED`."""
    return SDPA if kernel == SDPA and mode == "auto" else CHUNKED


def choose_fused_kernel(device: str, dtype: Any, width: int, *, plain: bool = True) -> str:
    """Return what computes such a call: torch's, since an exported folder does not need flash-attn."""
    return SDPA
