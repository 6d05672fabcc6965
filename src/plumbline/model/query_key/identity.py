"""Implements queries and keys that stay as they were projected."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Identity(nn.Module):
    """Leaves queries and keys unchanged."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()

    def forward(self, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return queries and keys unchanged."""
        return q_BHTW, k_BGTW
