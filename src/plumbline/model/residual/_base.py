"""The residual stream between sublayers. Sublayer 2l is layer l's attention, 2l + 1 its FFN."""

from __future__ import annotations

import torch
from torch import nn

#: What a residual carries from sublayer to sublayer: tensors (B, T, D), the current stream first.
State = tuple[torch.Tensor, ...]


class Residual(nn.Module):
    """The interface, with the standard stream's behaviour."""

    #: Whether the state is one stream that a placement may normalise.
    single_stream = True

    def start(self, x_BTD: torch.Tensor) -> State:
        """The state that the embedding starts."""
        return (x_BTD,)

    def read(self, state: State, sublayer: int) -> tuple[torch.Tensor, State]:
        """What a sublayer reads, and the state afterwards."""
        return state[0], state

    def write(self, state: State, sublayer: int, branch_BTD: torch.Tensor) -> State:
        """The state after a sublayer's output was added."""
        return (state[0] + branch_BTD, *state[1:])

    def replace(self, state: State, x_BTD: torch.Tensor) -> State:
        """The state with another current stream."""
        return (x_BTD, *state[1:])

    def finish(self, state: State) -> torch.Tensor:
        """What the final norm reads (B, T, D)."""
        return state[0]
