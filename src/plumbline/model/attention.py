"""The attention sublayer: projections, value and query/key transforms, positions, mixer, output transform."""

from __future__ import annotations

import msgspec
import torch
from torch import nn

from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.specs.spec import ModelSpec


class Attention(nn.Module):
    """One layer's attention, assembled from the slots of `model`."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.mixer = build("mixer", model, layer)
        # A mixer may have fewer key/value heads, or let fewer heads out, than the model has.
        model = msgspec.structs.replace(model, key_value_heads=self.mixer.groups)
        self.query_key = build("query_key", model, layer)
        self.values = build("values", model, layer)
        self.output = build("output", model, layer, self.mixer.output_heads)
        self.projections = build("projections", model, layer, self.mixer.output_heads)

    def forward(self, x_BTD: torch.Tensor, context: ForwardContext, positions: nn.Module) -> torch.Tensor:
        """What attention adds to the stream (B, T, D); `x_BTD` is its normalised input."""
        q_BHTW, k_BGTW, v_BGTW = self.projections(x_BTD)
        v_BGTW = self.values(v_BGTW, context)
        q_BHTW, k_BGTW = self.query_key(q_BHTW, k_BGTW)
        q_BHTW = positions.rotate(q_BHTW, context, self.mixer.splits)
        k_BGKW, v_BGKW = positions.rotate(k_BGTW, context, self.mixer.splits), v_BGTW
        if context.cache is not None:
            k_BGKW, v_BGKW = context.cache.extend(self.layer, k_BGKW, v_BGKW)
        out_BHTW = self.mixer(q_BHTW, k_BGKW, v_BGKW, context.visibility, context.cache)
        return self.projections.merge(self.output(out_BHTW, x_BTD))
