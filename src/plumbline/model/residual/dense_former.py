"""Implements DenseFormer: depth-weighted averages over the outputs of all earlier layers (transfer study, App. B.9)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.model.residual._base import Residual, State
from plumbline.model.roles import ExplicitInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class DenseFormer(Residual):
    """Y = sum_j alpha_j X_j over X_0, the embedding, and X_j, the output of layer j - 1, whose sublayers keep their
    residuals. Starts as the identity: the last weight is 1, the others 0.

    `variant`: with "input_side" each layer reads an average, of l + 1 sources for layer l and L (L + 1) / 2 weights
    in all: 300 for 24 layers, as the study counts them. With "official" an average follows each layer, the last one
    included: l + 2 sources and L (L + 3) / 2 weights, 324.
    """

    def __init__(self, model: ModelSpec, *, variant: Literal["input_side", "official"] = "input_side") -> None:
        super().__init__()
        self.official = variant == "official"
        counts = [layer + (2 if self.official else 1) for layer in range(model.layers)]
        self.weights = nn.ParameterList(
            parameter(count, role="scalar", layer=layer, init=ExplicitInit(values=(0.0,) * (count - 1) + (1.0,)))
            for layer, count in enumerate(counts)
        )

    def start(self, x_BTD: torch.Tensor) -> State:
        """The state: the stream, then the sources X_0, X_1, ... that are complete."""
        return (x_BTD, x_BTD) if self.official else (x_BTD,)

    def layer_inputs(self, layer: int) -> torch.Tensor:
        """The weights of the average before a layer, with "official" of that after it: a graph for each layer, since
        each has more sources than the one before."""
        return self.weights[layer]

    def begin_layer(self, state: State, inputs: torch.Tensor) -> State:
        """Replace the stream by the average of all sources before the layer, with "input_side"."""
        return state if self.official else self._average(state, inputs)

    def end_layer(self, state: State, inputs: torch.Tensor) -> State:
        """Replace the stream by the average of all sources after the layer, with "official"."""
        return self._average(state, inputs) if self.official else state

    def _average(self, state: State, weights_S: torch.Tensor) -> State:
        """Make the stream a source, and the average of all sources the stream."""
        sources = (*state[1:], state[0])
        # One source after the other: autograd then keeps references to the sources rather than a stacked copy.
        average_BTD = weights_S[-1] * sources[-1]
        for index, x_BTD in enumerate(sources[:-1]):
            average_BTD = average_BTD + weights_S[index] * x_BTD
        return (average_BTD, *sources)
