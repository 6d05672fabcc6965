"""Where numbers are widened, and where autocast is kept from narrowing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

_wide_attention = False


def attention_is_wide() -> bool:
    """Whether attention is to be computed in float32 whatever autocast does; a forward call asks once, at its start."""
    return _wide_attention


@contextmanager
def wide_attention() -> Iterator[None]:
    """Forward calls in here widen queries, keys and values, and keep autocast from the mixer."""
    global _wide_attention  # no ContextVar: torch.compile does not follow one
    before, _wide_attention = _wide_attention, True
    try:
        yield
    finally:
        _wide_attention = before


def widened(x: torch.Tensor) -> torch.Tensor:
    """At least float32: half precisions are widened, double stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: torch.Tensor) -> AbstractContextManager:
    """No autocast on the device of `x`. (The meta device has none, and torch refuses to switch it off there.)"""
    return nullcontext() if x.device.type == "meta" else torch.autocast(x.device.type, enabled=False)
