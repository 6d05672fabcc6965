"""Implements squared ReLU: a feed-forward network without a gate (transfer study, App. B.16)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ReLUSquared(nn.Module):
    """down(relu(up x)^2), inner width `width_ratio` times `ffn_width`.

    `square`: of the hidden units, as in Primer, or of the output, (down relu(up x))^2, as the paper's parentheses are
    set. A ratio of 1.5 gives two matrices the parameters of a gated network's three.

    Raises:
        PlumblineError: the inner width is not a whole number.
    """

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        width_ratio: float = 1.5,
        square: Literal["hidden", "output"] = "hidden",
    ) -> None:
        super().__init__()
        self.square = square
        inner = width_ratio * model.ffn_width
        if inner != int(inner) or inner < 1:
            raise PlumblineError(
                f"model.ffn.width_ratio: {width_ratio} times model.ffn_width ({model.ffn_width}) is {inner}, "
                "which is no width; change one of the two"
            )
        self.up = linear(model.width, int(inner), role="up", layer=layer)
        self.down = linear(int(inner), model.width, role="down", layer=layer, residual=True)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """Compute the network's output (B, T, D)."""
        hidden_BTF = self.up(x_BTD).relu()
        # Autocast on a GPU takes a power in float32, which doubles what is moved; the product has the same bits.
        # Of the output, which goes into a stream of float32, the square stays one.
        return self.down(hidden_BTF * hidden_BTF) if self.square == "hidden" else self.down(hidden_BTF).square()
