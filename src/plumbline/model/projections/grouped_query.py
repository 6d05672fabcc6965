"""Implements grouped-query projections: queries for every head, keys and values shared by groups of heads.

With groups of one head it is multi-head attention.
"""

from __future__ import annotations

import torch

from plumbline.model.fused_linear import fused_linear
from plumbline.model.projections._base import Projections
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class GroupedQuery(Projections):
    """Linear maps to queries (H heads), keys and values (G heads), and back from the mixer's output heads."""

    def __init__(self, model: ModelSpec, layer: int, output_heads: int, *, bias: bool = False) -> None:
        super().__init__(model)
        inner, shared = model.heads * model.head_width, model.key_value_heads * model.head_width
        self.query = linear(model.width, inner, role="query", layer=layer, bias=bias)
        self.key = linear(model.width, shared, role="key", layer=layer, bias=bias)
        self.value = linear(model.width, shared, role="value", layer=layer, bias=bias)
        self.output = linear(
            output_heads * model.head_width, model.width, role="output", layer=layer, bias=bias, residual=True
        )

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Project the stream to queries (B, H, T, W), keys and values (B, G, T, W)."""
        q_BTX, k_BTX, v_BTX = fused_linear(x_BTD, (self.query, self.key, self.value))
        return self.heads(q_BTX), self.heads(k_BTX), self.heads(v_BTX)
