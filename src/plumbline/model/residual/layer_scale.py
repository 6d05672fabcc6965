"""Implements LayerScale: a learned gain for every channel of what a sublayer writes (transfer study, App. B.10)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.model.float32_widening import widen
from plumbline.model.residual._base import Residual, State
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class LayerScale(Residual):
    """x + gamma * f(x), gamma of `width` channels, starting at `initial`.

    `vectors` per layer: 1, shared by attention and FFN, is what the study's Table 4 leaves room for; 2, one for each,
    is CaiT's, whose 24-layer models start at 1e-5. The product is taken in float32: gamma * f is below bfloat16's
    resolution of x for a long time.
    """

    def __init__(self, model: ModelSpec, *, vectors: Literal[1, 2] = 1, initial: float = 1e-4) -> None:
        super().__init__()
        self.vectors = vectors
        self.gammas = nn.ParameterList(
            parameter(model.width, role="scalar", layer=index // vectors, init=ConstantInit(value=initial))
            for index in range(model.layers * vectors)
        )

    def layer_inputs(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The gains of the attention's and the FFN's channels, (D,) each."""
        return self.gammas[layer * self.vectors], self.gammas[(layer + 1) * self.vectors - 1]

    def write(
        self, state: State, sublayer: int, inputs: tuple[torch.Tensor, torch.Tensor], branch_BTD: torch.Tensor
    ) -> State:
        """Add the sublayer's output times its gain to the stream."""
        scaled_BTD = widen(branch_BTD) * widen(inputs[sublayer])
        return (state[0] + scaled_BTD.to(torch.promote_types(state[0].dtype, branch_BTD.dtype)),)
