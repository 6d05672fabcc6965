"""Implements pre-norm: each sublayer reads a normalised stream and adds to the raw one."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.component import build
from plumbline.model.placement._base import Placement
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class PreNorm(Placement):
    """Pre-norm, x + f(norm(x)), for attention and for the FFN."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(build("norm", model, layer, model.width) for _ in range(2))

    def before(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """Normalise the sublayer's input (B, T, D)."""
        return self.norms[sublayer](x_BTD)
