"""Implements GeGLU: a gated feed-forward network with GELU (transfer study, App. B.12)."""

from __future__ import annotations

from typing import Literal

import torch
from torch.nn.functional import gelu as gelu_function

from plumbline.model.ffn._gated import Gated
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class GeGLU(Gated):
    """down(gelu(gate x) * up x), inner width `ffn_width`; `gelu` by the error function or its tanh approximation.

    `bias`: whether the three maps have one.
    """

    def __init__(
        self, model: ModelSpec, layer: int, *, bias: bool = False, gelu: Literal["erf", "tanh"] = "erf"
    ) -> None:
        super().__init__(model, layer, bias=bias)
        self.approximate = "tanh" if gelu == "tanh" else "none"

    def activate(self, x_BTF: torch.Tensor) -> torch.Tensor:
        """GELU of the gate (B, T, F)."""
        return gelu_function(x_BTF, approximate=self.approximate)
