"""Implements values that stay as they were projected."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.context import ForwardContext
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Identity(nn.Module):
    """Leaves values unchanged."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()

    def forward(self, v_BGTW: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """Return the values unchanged."""
        return v_BGTW
