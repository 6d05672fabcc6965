"""Implements gated attention: each head's output is scaled by a gate that reads the sublayer's input."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class HeadGate(nn.Module):
    """sigmoid(W_g x) times a head's output, before the output projection; x is what the query projection reads.

    W_g (output heads x width) has no bias and starts like every matrix, so that gates start near 0.5. Source: transfer
    study, appendix B.17, the head-wise form of Qiu et al. 2025.
    """

    def __init__(self, model: ModelSpec, layer: int, output_heads: int) -> None:
        super().__init__()
        self.gate = linear(model.width, output_heads, role="attention_gate", layer=layer)

    def forward(self, out_BHTW: torch.Tensor, x_BTD: torch.Tensor) -> torch.Tensor:
        """Scale each head's output (B, H, T, W) by its gate of the sublayer's normalised input `x_BTD`."""
        gate_BHT = self.gate(x_BTD).sigmoid().transpose(1, 2)
        return out_BHTW * gate_BHT[..., None].to(out_BHTW.dtype)
