"""Implements GELU: a feed-forward network of two matrices, as in GPT-2 (premature study, sections 3 and 4)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn
from torch.nn.functional import gelu as gelu_function

from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class GELU(nn.Module):
    """down(gelu(up x)), inner width `ffn_width`; `gelu` by the error function or its tanh approximation.

    `bias`: whether both maps have one.
    """

    def __init__(
        self, model: ModelSpec, layer: int, *, bias: bool = False, gelu: Literal["erf", "tanh"] = "erf"
    ) -> None:
        super().__init__()
        self.approximate = "tanh" if gelu == "tanh" else "none"
        self.up = linear(model.width, model.ffn_width, role="up", layer=layer, bias=bias)
        self.down = linear(model.ffn_width, model.width, role="down", layer=layer, bias=bias, residual=True)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """Compute the network's output (B, T, D)."""
        return self.down(gelu_function(self.up(x_BTD), approximate=self.approximate))
