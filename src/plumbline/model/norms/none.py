"""Implements no normalisation."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class NoNorm(nn.Module):
    """Leaves its input unchanged: the query_free study's theorems 4.1 to 4.3 are about models without norms."""

    def __init__(self, model: ModelSpec, layer: int | None, width: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `x` unchanged."""
        return x
