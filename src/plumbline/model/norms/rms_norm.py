"""Implements root-mean-square normalisation with a gain."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.float32_widening import widen
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * gain over the last dimension, in float32 or wider; gain starts at 1."""

    def __init__(self, model: ModelSpec, layer: int | None, width: int) -> None:
        super().__init__()
        self.eps = model.norm_eps
        self.gain = parameter(width, role="norm", layer=layer, init=ConstantInit(value=1.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise `x` over its last dimension, in its own type."""
        wide = widen(x)
        normalised = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        if torch.is_grad_enabled():
            normalised = normalised * widen(self.gain)
        else:  # nothing is kept for a gradient: no tensor more
            normalised *= widen(self.gain)
        return normalised.to(x.dtype)
