"""Defines the base of gated feed-forward networks."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.fused_linear import fused_linear
from plumbline.model.roles import linear
from plumbline.specs.spec import ModelSpec


class Gated(nn.Module):
    """down(activate(gate x) * up x), inner width `ffn_width`; a subclass defines `activate`.

    `bias`: whether the three maps have one.
    """

    def __init__(self, model: ModelSpec, layer: int, *, bias: bool) -> None:
        super().__init__()
        self.gate = linear(model.width, model.ffn_width, role="gate", layer=layer, bias=bias)
        self.up = linear(model.width, model.ffn_width, role="up", layer=layer, bias=bias)
        self.down = linear(model.ffn_width, model.width, role="down", layer=layer, bias=bias, residual=True)

    def activate(self, x_BTF: torch.Tensor) -> torch.Tensor:
        """Apply the gate's non-linearity (B, T, F)."""
        raise TypeError(f"{type(self).__name__} defines no activation")

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """Compute the network's output (B, T, D)."""
        gate_BTF, up_BTF = fused_linear(x_BTD, (self.gate, self.up))
        active_BTF = self.activate(gate_BTF)
        if torch.is_grad_enabled():
            active_BTF = active_BTF * up_BTF
        else:  # nothing is kept for a gradient: no tensor more
            active_BTF *= up_BTF
        return self.down(active_BTF)
