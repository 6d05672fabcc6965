"""Implements SwiGLU: the baseline's feed-forward network."""

from __future__ import annotations

import torch
from torch.nn.functional import silu

from plumbline.model.ffn._gated import Gated
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class SwiGLU(Gated):
    """down(silu(gate x) * up x), inner width `ffn_width`; `bias`: whether the three maps have one."""

    def __init__(self, model: ModelSpec, layer: int, *, bias: bool = False) -> None:
        super().__init__(model, layer, bias=bias)

    def activate(self, x_BTF: torch.Tensor) -> torch.Tensor:
        """SiLU of the gate (B, T, F)."""
        return silu(x_BTF)
