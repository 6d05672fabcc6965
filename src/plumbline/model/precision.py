"""Where numbers are widened, and where autocast is kept from narrowing them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def widened(x: torch.Tensor) -> torch.Tensor:
    """At least float32: half precisions are widened, double stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: torch.Tensor) -> AbstractContextManager:
    """No autocast on the device of `x`. (The meta device has none, and torch refuses to switch it off there.)"""
    return nullcontext() if x.device.type == "meta" else torch.autocast(x.device.type, enabled=False)
