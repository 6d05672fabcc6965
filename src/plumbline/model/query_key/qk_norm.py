"""Implements QK-Norm: queries and keys are normalised within each head."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.norms import rms_norm
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class QKNorm(nn.Module):
    """RMSNorm over the head width, after the projection and before the rotation.

    One gain for queries and one for keys, shared by all heads of a layer, from 1; no temperature. Source: transfer
    study, appendix B.3 (the form of Qwen3 and Gemma 3; Henry et al. 2020 use a learned temperature instead).
    """

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.query_norm = rms_norm.RMSNorm(model, layer, model.head_width)
        self.key_norm = rms_norm.RMSNorm(model, layer, model.head_width)

    def forward(self, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Normalise queries (B, H, T, W) and keys (B, G, T, W) over the head width."""
        return self.query_norm(q_BHTW), self.key_norm(k_BGTW)
