"""SwiGLU: the baseline's feed-forward network."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import silu

from plumbline.model.component import component
from plumbline.model.roles import linear
from plumbline.studies.spec import ModelSpec


@component
class SwiGLU(nn.Module):
    """down(silu(gate x) * up x), inner width `ffn_width`."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.gate = linear(model.width, model.ffn_width, role="gate", layer=layer)
        self.up = linear(model.width, model.ffn_width, role="up", layer=layer)
        self.down = linear(model.ffn_width, model.width, role="down", layer=layer, residual=True)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        return self.down(silu(self.gate(x_BTD)) * self.up(x_BTD))
