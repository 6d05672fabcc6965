"""Implements queries that are the input itself, cut into heads: W_Q = I."""

from __future__ import annotations

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.fused_linear import fused_linear
from plumbline.model.projections._base import Projections
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class IdentityQuery(Projections):
    """Query head h is coordinates h W to (h + 1) W of the normalised stream; keys, values and output are learned.

    Source: query_free study, sections 3 and 5.1. One of attention's four matrices, width^2 parameters per layer, is
    left out.

    Raises:
        PlumblineError: the heads do not fill the stream.
    """

    def __init__(self, model: ModelSpec, layer: int, output_heads: int, *, bias: bool = False) -> None:
        super().__init__(model)
        require_square(model, "identity_query")
        shared = model.key_value_heads * model.head_width
        self.key = linear(model.width, shared, role="key", layer=layer, bias=bias)
        self.value = linear(model.width, shared, role="value", layer=layer, bias=bias)
        self.output = linear(
            output_heads * model.head_width, model.width, role="output", layer=layer, bias=bias, residual=True
        )

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Cut the stream into queries (B, H, T, W), and project it to keys and values (B, G, T, W)."""
        k_BTX, v_BTX = fused_linear(x_BTD, (self.key, self.value))
        return self.heads(self.query(x_BTD).to(k_BTX.dtype)), self.heads(k_BTX), self.heads(v_BTX)

    def query(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """All heads' queries side by side (B, T, D): the input itself."""
        return x_BTD


def require_square(model: ModelSpec, name: str) -> None:
    """Refuse a model whose heads do not fill the stream.

    Raises:
        PlumblineError: model.heads x model.head_width is not model.width.
    """
    if model.heads * model.head_width != model.width:
        raise PlumblineError(
            f"model.projections {name!r}: queries are slices of the stream, so model.heads x model.head_width "
            f"({model.heads} x {model.head_width}) must be model.width ({model.width})"
        )
