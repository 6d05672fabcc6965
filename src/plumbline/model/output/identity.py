"""Implements head outputs that go into the output projection unchanged."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Identity(nn.Module):
    """Leaves head outputs unchanged."""

    def __init__(self, model: ModelSpec, layer: int, output_heads: int) -> None:
        super().__init__()

    def forward(self, out_BHTW: torch.Tensor, x_BTD: torch.Tensor) -> torch.Tensor:
        """Return the head outputs unchanged; `x_BTD`, the sublayer's normalised input, is not used."""
        return out_BHTW
