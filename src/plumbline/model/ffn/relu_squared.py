"""Squared ReLU: a feed-forward network without a gate (transfer study, App. B.16)."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.cli import PlumblineError
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ReLUSquared(nn.Module):
    """down(relu(up x)^2), inner width `width_ratio` times `ffn_width`.

    The square is of the hidden units, as in Primer; the document's parentheses would square the output. A ratio of
    1.5 gives two matrices the parameters of a gated network's three.

    Raises:
        PlumblineError: the inner width is not a whole number.
    """

    def __init__(self, model: ModelSpec, layer: int, *, width_ratio: float = 1.5) -> None:
        super().__init__()
        inner = width_ratio * model.ffn_width
        if inner != int(inner) or inner < 1:
            raise PlumblineError(
                f"model.ffn.width_ratio: {width_ratio} times model.ffn_width ({model.ffn_width}) is {inner}, "
                "which is no width; change one of the two"
            )
        self.up = linear(model.width, int(inner), role="up", layer=layer)
        self.down = linear(int(inner), model.width, role="down", layer=layer, residual=True)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x_BTD).relu().square())
