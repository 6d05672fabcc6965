"""Head outputs as mixed."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Identity(nn.Module):
    """Changes nothing."""

    def __init__(self, model: ModelSpec, layer: int, output_heads: int) -> None:
        super().__init__()

    def forward(self, out_BHTW: torch.Tensor, x_BTD: torch.Tensor) -> torch.Tensor:
        """`x_BTD` is the sublayer's normalised input, which a gate reads."""
        return out_BHTW
