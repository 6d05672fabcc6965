"""Chooses the kernel of a model's attention for the whole of a run, and describes it for the manifest."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.model import cudnn_attention
from plumbline.model.cudnn_attention import CUDNN
from plumbline.model.decoder import Decoder
from plumbline.model.kernels.selection import (
    CHUNKED,
    FLASH_ATTN,
    SDPA,
    AttentionMode,
    choose_fused_kernel,
    choose_kernel,
    describe_missing_package,
    find_flash_packages,
    package_versions,
)


def choose(model: Decoder, mode: AttentionMode, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Make all layers' attention use the kernel that `mode` asks for, and describe the choice for a manifest.

    Returns:
        `mode`; `kernel`: what a call without padding and cache runs through, in `dtype` on `device`; `triton`,
        `flash_attn`, `cudnn`: the version of the package that it runs by, or None; `notice`: what is not installed and
        would be used, or None.
    """
    mixers = [block.attention.mixer for block in model.blocks]
    for mixer in mixers:
        mixer.attention = mode
    mixer_kernel = mixers[0].kernel
    kernel = choose_kernel(mixer_kernel, device, dtype, mode=mode)
    if mixers[0].prefers_explicit(device, dtype, model.spec.context):
        kernel = CHUNKED
    if kernel == SDPA:
        spec = model.spec
        kernel = choose_fused(
            device, dtype, heads=spec.heads, groups=spec.key_value_heads, width=spec.head_width, context=spec.context
        )
    notice = describe_missing_package(mixer_kernel, device, dtype, mode=mode)
    cudnn = cudnn_attention.version() if kernel == CUDNN else None
    return {"asked": mode, "kernel": kernel, **package_versions(kernel), "cudnn": cudnn, "notice": notice}


def choose_fused(device: str, dtype: torch.dtype, *, heads: int, groups: int, width: int, context: int) -> str:
    """Choose what computes causal calls of fused softmax attention, and tell torch's dispatcher.

    A package of flash-attention by its name (flash-attn 3 on a Hopper, else flash-attn), which somebody has installed
    for it, then cuDNN's kernel, then what torch takes by itself.
    """
    kernel = choose_fused_kernel(device, dtype, width)
    kernel = find_flash_packages()[0] if kernel == FLASH_ATTN else kernel
    cudnn_first = (
        kernel == SDPA
        and device == "cuda"
        and cudnn_attention.takes_call(dtype, heads=heads, groups=groups, width=width, context=context)
    )
    cudnn_attention.order_back_ends(cudnn_first=cudnn_first)
    return CUDNN if cudnn_first else kernel
