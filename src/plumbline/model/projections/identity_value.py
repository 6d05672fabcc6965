"""Implements values that are the input itself, cut into heads: W_V = I."""

from __future__ import annotations

import torch

from plumbline.model.fused_linear import fused_linear
from plumbline.model.projections._base import Projections
from plumbline.model.projections.identity_key import require_filled_stream
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class IdentityValue(Projections):
    """Value head h is coordinates h W to (h + 1) W of the normalised stream; queries, keys and output are learned.

    Source: query_free study, abstract: the output projection, which reads the heads, takes over what W_V did.

    Raises:
        PlumblineError: the key/value heads do not fill the stream.
    """

    def __init__(self, model: ModelSpec, layer: int, output_heads: int, *, bias: bool = False) -> None:
        super().__init__(model)
        require_filled_stream(model, "identity_value")
        inner = model.heads * model.head_width
        self.query = linear(model.width, inner, role="query", layer=layer, bias=bias)
        self.key = linear(model.width, model.width, role="key", layer=layer, bias=bias)
        self.output = linear(
            output_heads * model.head_width, model.width, role="output", layer=layer, bias=bias, residual=True
        )

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Cut the stream into values (B, G, T, W), and project it to queries (B, H, T, W) and keys (B, G, T, W)."""
        q_BTX, k_BTX = fused_linear(x_BTD, (self.query, self.key))
        return self.heads(q_BTX), self.heads(k_BTX), self.heads(x_BTD.to(q_BTX.dtype))
