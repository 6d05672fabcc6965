"""Queries for every head; keys and values shared by groups of heads (all heads where the groups are of one)."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class GroupedQuery(nn.Module):
    """Linear maps to queries (H heads), keys and values (G heads), and back from the mixer's output heads."""

    def __init__(self, model: ModelSpec, layer: int, output_heads: int, *, bias: bool = False) -> None:
        super().__init__()
        self.head_width = model.head_width
        inner, shared = model.heads * model.head_width, model.key_value_heads * model.head_width
        self.query = linear(model.width, inner, role="query", layer=layer, bias=bias)
        self.key = linear(model.width, shared, role="key", layer=layer, bias=bias)
        self.value = linear(model.width, shared, role="value", layer=layer, bias=bias)
        self.output = linear(
            output_heads * model.head_width, model.width, role="output", layer=layer, bias=bias, residual=True
        )

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (B, H, T, W), keys and values (B, G, T, W)."""
        q, k, v = self.query(x_BTD), self.key(x_BTD), self.value(x_BTD)
        return tuple(x.unflatten(-1, (-1, self.head_width)).transpose(1, 2) for x in (q, k, v))

    def merge(self, out_BHTW: torch.Tensor) -> torch.Tensor:
        """Head outputs back to the width of the stream (B, T, D)."""
        return self.output(out_BHTW.transpose(1, 2).flatten(-2))
