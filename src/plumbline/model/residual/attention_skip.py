"""Implements a skip connection around attention only."""

from __future__ import annotations

import torch

from plumbline.model.residual._base import LayerInputs, Residual, State
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class AttentionSkip(Residual):
    """x + attention(x), then ffn(x): the FFN's output replaces the stream, so that its output matrix may change the
    stream's basis. Source: query_free study, theorem 4.2."""

    def __init__(self, model: ModelSpec) -> None:
        super().__init__()

    def write(self, state: State, sublayer: int, inputs: LayerInputs, branch_BTD: torch.Tensor) -> State:
        """Add the attention's output to the stream, or replace the stream by the FFN's output."""
        if sublayer == 0:
            return super().write(state, sublayer, inputs, branch_BTD)
        return (branch_BTD, *state[1:])
