"""The kernel of a model's attention, chosen for the whole of a run and written down."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.kernels.selection import Asked, chosen, lacking
from plumbline.model.decoder import Decoder


def choose(model: Decoder, asked: Asked, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Have all layers' attention go the way that is `asked` for, and say for a manifest what that is.

    Returns:
        `asked`; `kernel`: what a call without padding and cache goes through, in `dtype` on `device`; `notice`: what
        is not installed and would be used, or None.
    """
    mixers = [block.attention.mixer for block in model.blocks]
    for mixer in mixers:
        mixer.attention = asked
    kernel = mixers[0].kernel
    return {
        "asked": asked,
        "kernel": chosen(kernel, device, dtype, asked=asked),
        "notice": lacking(kernel, device, dtype, asked=asked),
    }
