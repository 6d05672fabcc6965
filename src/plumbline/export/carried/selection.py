"""Stands in for `plumbline.model.kernels.selection` in an exported folder: no kernels come with it, so that it needs no
Triton.

Mixers that torch's fused attention cannot compute make explicit weights, some queries at a time, on every device.
"""

from __future__ import annotations

from typing import Any

Asked = str
CHUNKED = "chunked"
SDPA = "sdpa"
FLASH_ATTN = "flash_attn"


def chosen(kernel: str | None, device: str, dtype: Any, *, plain: bool = True, asked: Asked = "auto") -> str:
    """The kernel that a call runs through: torch's fused attention where it can, else `CHUNKED`."""
    return SDPA if kernel == SDPA and asked == "auto" else CHUNKED


def fused(device: str, dtype: Any, width: int, *, plain: bool = True) -> str:
    """What computes such a call: torch's, since an exported folder needs no flash-attn."""
    return SDPA
