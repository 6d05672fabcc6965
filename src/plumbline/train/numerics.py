"""How numbers are computed in training, and wherever a trained model is to give the same numbers again."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from plumbline.specs.spec import Precision


def numerics(device: torch.device) -> None:
    """Deterministic on a CPU; float32 products in float32 everywhere."""
    # The same as use_deterministic_algorithms, without its import of torch.compile's machinery.
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else "default")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """What a forward call at `precision` runs under."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
