"""Implements sandwich norm: a norm before and after each sublayer (transfer study, App. B.14)."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.component import build
from plumbline.model.placement._base import Placement
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class SandwichNorm(Placement):
    """Sandwich norm, x + norm(f(norm(x))), for attention and for the FFN.

    At the start every contribution to the stream has a root mean square of 1.
    """

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(build("norm", model, layer, model.width) for _ in range(2))
        self.branch_norms = nn.ModuleList(build("norm", model, layer, model.width) for _ in range(2))

    def before(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """Normalise the sublayer's input (B, T, D)."""
        return self.norms[sublayer](x_BTD)

    def after(self, sublayer: int, branch_BTD: torch.Tensor) -> torch.Tensor:
        """Normalise the sublayer's output (B, T, D)."""
        return self.branch_norms[sublayer](branch_BTD)
