"""Implements layer normalisation with a gain, and with or without a bias."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import layer_norm

from plumbline.model.float32_widening import widen
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class LayerNorm(nn.Module):
    """(x - mean(x)) / sqrt(var(x) + eps) * gain + bias over the last dimension, in float32 or wider.

    The gain starts at 1, the bias at 0. The GPT of the premature study has both, also where it is "biasless" (that is
    said of its linear maps; the printed counts come out so alone); the nanoGPT of the query_free study has no bias.
    """

    def __init__(self, model: ModelSpec, layer: int | None, width: int, *, bias: bool = True) -> None:
        super().__init__()
        self.eps = model.norm_eps
        self.gain = parameter(width, role="norm", layer=layer, init=ConstantInit(value=1.0))
        self.bias = (
            parameter(width, role="bias", layer=layer, init=ConstantInit(value=0.0), owner="norm") if bias else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise `x` over its last dimension, in its own type."""
        bias = None if self.bias is None else widen(self.bias)
        return layer_norm(widen(x), self.gain.shape, widen(self.gain), bias, self.eps).to(x.dtype)
