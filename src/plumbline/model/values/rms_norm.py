"""Implements values that are normalised within each head."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.context import ForwardContext
from plumbline.model.norms import rms_norm
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ValueRMSNorm(nn.Module):
    """RMSNorm over the head width; one gain shared by the key/value heads of a layer, from 1.

    With QK-Norm it is the QKV-norm that HybridNorm's authors put in place of attention's pre-norm (Zhuo et al. 2025).
    """

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.norm = rms_norm.RMSNorm(model, layer, model.head_width)

    def forward(self, v_BGTW: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """Normalise values (B, G, T, W) over the head width."""
        return self.norm(v_BGTW)
