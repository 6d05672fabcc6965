"""Widens numbers to float32, and keeps autocast from narrowing them, where a model needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

_wide_attention = False


def attention_is_wide() -> bool:
    """Whether attention is computed in float32 whatever autocast does; a forward call asks once, at its start."""
    return _wide_attention


@contextmanager
def wide_attention() -> Iterator[None]:
    """Compute attention of forward calls in the block in float32: inputs are widened, and the mixer has no autocast."""
    global _wide_attention  # no ContextVar: torch.compile does not follow one
    old_value, _wide_attention = _wide_attention, True
    try:
        yield
    finally:
        _wide_attention = old_value


def widen(x: torch.Tensor) -> torch.Tensor:
    """Convert a tensor to at least float32: half precisions are widened, double stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: torch.Tensor) -> AbstractContextManager:
    """Switch autocast off on the device of `x`.

    (The meta device has none, and torch refuses to switch it off there.)
    """
    return nullcontext() if x.device.type == "meta" else torch.autocast(x.device.type, enabled=False)
