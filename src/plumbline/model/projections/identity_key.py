"""Implements keys that are the input itself, cut into heads: W_K = I."""

from __future__ import annotations

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.fused_linear import fused_linear
from plumbline.model.projections._base import Projections
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class IdentityKey(Projections):
    """Key head h is coordinates h W to (h + 1) W of the normalised stream; queries, values and output are learned.

    Source: query_free study, abstract and section 6: scores are a bilinear form, which W_Q alone can learn too.

    Raises:
        PlumblineError: the key/value heads do not fill the stream.
    """

    def __init__(self, model: ModelSpec, layer: int, output_heads: int, *, bias: bool = False) -> None:
        super().__init__(model)
        require_filled_stream(model, "identity_key")
        inner = model.heads * model.head_width
        self.query = linear(model.width, inner, role="query", layer=layer, bias=bias)
        self.value = linear(model.width, model.width, role="value", layer=layer, bias=bias)
        self.output = linear(
            output_heads * model.head_width, model.width, role="output", layer=layer, bias=bias, residual=True
        )

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Cut the stream into keys (B, G, T, W), and project it to queries (B, H, T, W) and values (B, G, T, W)."""
        q_BTX, v_BTX = fused_linear(x_BTD, (self.query, self.value))
        return self.heads(q_BTX), self.heads(x_BTD.to(q_BTX.dtype)), self.heads(v_BTX)


def require_filled_stream(model: ModelSpec, name: str) -> None:
    """Refuse a model whose key/value heads do not fill the stream.

    Raises:
        PlumblineError: model.key_value_heads x model.head_width is not model.width.
    """
    if model.key_value_heads * model.head_width != model.width:
        raise PlumblineError(
            f"model.projections {name!r}: the stream itself is cut into key/value heads, so model.key_value_heads x "
            f"model.head_width ({model.key_value_heads} x {model.head_width}) must be model.width ({model.width})"
        )
