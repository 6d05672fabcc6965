"""Implements queries that are the input itself, cut into heads, in some layers, and are projected in the others."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.fused_linear import fused_linear
from plumbline.model.projections.grouped_query import GroupedQuery
from plumbline.model.projections.identity_query import require_square
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class PartialIdentityQuery(GroupedQuery):
    """W_Q = I in the layers that `layers` names, by numbers from 0 with commas between them ("0,3").

    Source: query_free study, Theorem 4.1: with skip connections around attention and FFN, W_Q can be taken out of one
    layer.

    Raises:
        PlumblineError: `layers` names a layer that the model does not have, or the heads do not fill the stream.
    """

    def __init__(
        self, model: ModelSpec, layer: int, output_heads: int, *, bias: bool = False, layers: str = "0"
    ) -> None:
        super().__init__(model, layer, output_heads, bias=bias)
        require_square(model, "partial_identity_query")
        self.identity = layer in parse_layers(layers, model.layers)
        if self.identity:
            self.query = nn.Identity()  # type: ignore[assignment]

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (B, H, T, W), in a chosen layer the stream itself, and keys and values (B, G, T, W)."""
        if not self.identity:
            return super().forward(x_BTD)
        k_BTX, v_BTX = fused_linear(x_BTD, (self.key, self.value))
        return self.heads(self.query(x_BTD).to(k_BTX.dtype)), self.heads(k_BTX), self.heads(v_BTX)


def parse_layers(layers: str, layer_count: int) -> set[int]:
    """Parse the option `layers` into layer numbers, of a model with `layer_count` layers.

    Raises:
        PlumblineError: it does not name layers of the model.
    """
    numbers = layers.split(",")
    if not all(number.strip().isdecimal() and int(number) < layer_count for number in numbers):
        raise PlumblineError(
            f"model.projections.layers: {layers!r} does not name layers of 0 to {layer_count - 1}; write them like "
            "'0,3'"
        )
    return {int(number) for number in numbers}
