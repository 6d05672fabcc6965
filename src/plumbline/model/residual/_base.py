"""Defines the residual stream between sublayers. Sublayer 0 is a layer's attention, 1 its FFN.

start -> for each layer: begin_layer -> (read -> sublayer -> write) twice -> end_layer -> ... -> finish

The steps between start and finish are told no layer's number, which torch.compile would take for a part of the code and
make a graph of each layer. They are handed the layer's own tensors instead (`layer_inputs`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

#: What a residual carries from sublayer to sublayer, each part (B, T, ...) unless the residual overrides
#: `select_tokens`. A single stream (B, T, D), if there is one, comes first.
State = tuple[torch.Tensor, ...]

#: What a residual computes with in one layer: its tensors, modules of it, or None. Layers whose inputs and states have
#: the same form are one graph of torch.compile.
LayerInputs = Any


class Residual(nn.Module):
    """The interface of residual streams, with the behaviour of the standard one.

    The decoder owns the one residual of a model and hands it to every block. All of its steps act on each position by
    itself, so that decoding needs no cache for them.
    """

    #: Whether `state[0]` is the stream, which a norm placement may normalise.
    single_stream = True
    #: Multiplications in matrix products, for each token and all layers.
    products_per_token = 0

    def start(self, x_BTD: torch.Tensor) -> State:
        """Make the state from the embedding (B, T, D)."""
        return (x_BTD,)

    def layer_inputs(self, layer: int) -> LayerInputs:
        """What the steps of a layer compute with; the layer's number itself where each layer does other work."""
        return None

    def begin_layer(self, state: State, inputs: LayerInputs) -> State:
        """Update the state before a layer's first sublayer."""
        return state

    def read(self, state: State, sublayer: int, inputs: LayerInputs) -> torch.Tensor:
        """The input (B, T, D) that a sublayer reads from the state."""
        return state[0]

    def write(self, state: State, sublayer: int, inputs: LayerInputs, branch_BTD: torch.Tensor) -> State:
        """The state after a sublayer's output (B, T, D) was added."""
        return (state[0] + branch_BTD, *state[1:])

    def end_layer(self, state: State, inputs: LayerInputs) -> State:
        """Update the state after a layer's second sublayer."""
        return state

    def replace(self, state: State, x_BTD: torch.Tensor) -> State:
        """The state with `x_BTD` in place of its current stream."""
        return (x_BTD, *state[1:])

    def select_tokens(self, state: State, selected_S: torch.Tensor) -> State:
        """The state of some tokens as one row (1, S, ...), by their places `selected_S` in all rows (B, T)."""
        return tuple(part_BT.flatten(0, 1)[selected_S][None] for part_BT in state)

    def finish(self, state: State) -> torch.Tensor:
        """The stream (B, T, D) that the final norm reads."""
        return state[0]
