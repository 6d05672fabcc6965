"""Sees which of torch's operators are called, and with tensors of which types."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Collects the calls of a ``with`` block: the operator's name, and the types of the tensors that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, tuple[torch.dtype, ...]]] = []

    @property
    def names(self) -> set[str]:
        """The operators that were called."""
        return {name for name, _ in self.made}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        dtypes = [value.dtype for value in args if isinstance(value, torch.Tensor)]
        self.made.append((func.overloadpacket.__name__, tuple(dtypes)))
        return func(*args, **(kwargs or {}))
