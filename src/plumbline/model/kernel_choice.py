"""Chooses the kernel of a model's attention for the whole of a run, and describes it for the manifest."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.model.decoder import Decoder
from plumbline.model.kernels.selection import CHUNKED, SDPA, Asked, chosen, fused, lacking, package_versions


def choose(model: Decoder, asked: Asked, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Make all layers' attention use the kernel that is `asked` for, and describe the choice for a manifest.

    Returns:
        `asked`; `kernel`: what a call without padding and cache runs through, in `dtype` on `device`; `triton`,
        `flash_attn`: the version of the package that it runs by, or None; `notice`: what is not installed and would be
        used, or None.
    """
    mixers = [block.attention.mixer for block in model.blocks]
    for mixer in mixers:
        mixer.attention = asked
    own = mixers[0].kernel
    kernel = chosen(own, device, dtype, asked=asked)
    if mixers[0].explicit(device, dtype, model.spec.context):
        kernel = CHUNKED
    if kernel == SDPA:
        kernel = fused(device, dtype, model.spec.head_width)
    notice = lacking(own, device, dtype, asked=asked)
    return {"asked": asked, "kernel": kernel, **package_versions(kernel), "notice": notice}
