"""Chooses the kernel of a model's attention for the whole of a run, and describes it for the manifest."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.model.decoder import Decoder
from plumbline.model.kernels.selection import (
    CHUNKED,
    SDPA,
    AttentionMode,
    choose_fused_kernel,
    choose_kernel,
    describe_missing_package,
    package_versions,
)


def choose(model: Decoder, mode: AttentionMode, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Make all layers' attention use the kernel that `mode` asks for, and describe the choice for a manifest.

    Returns:
        `mode`; `kernel`: what a call without padding and cache runs through, in `dtype` on `device`; `triton`,
        `flash_attn`: the version of the package that it runs by, or None; `notice`: what is not installed and would be
        used, or None.
    """
    mixers = [block.attention.mixer for block in model.blocks]
    for mixer in mixers:
        mixer.attention = mode
    own = mixers[0].kernel
    kernel = choose_kernel(own, device, dtype, mode=mode)
    if mixers[0].prefers_explicit(device, dtype, model.spec.context):
        kernel = CHUNKED
    if kernel == SDPA:
        kernel = choose_fused_kernel(device, dtype, model.spec.head_width)
    notice = describe_missing_package(own, device, dtype, mode=mode)
    return {"asked": mode, "kernel": kernel, **package_versions(kernel), "notice": notice}
