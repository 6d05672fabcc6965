"""Builds the attention sublayer: projections, value and query/key transforms, positions, mixer, output transform."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.model.float32_widening import widen, without_autocast
from plumbline.specs.spec import ModelSpec


class Attention(nn.Module):
    """One layer's attention, assembled from the slots of `model`.

    Raises:
        PlumblineError: two of the chosen components do not go together.
    """

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.mixer = build("mixer", model, layer)
        # A mixer may have fewer key/value heads, or let fewer heads out, than the model has.
        model = model.resize(key_value_heads=self.mixer.groups)
        self.query_key = build("query_key", model, layer)
        self.values = build("values", model, layer)
        self.output = build("output", model, layer, self.mixer.output_heads)
        self.projections = build("projections", model, layer, self.mixer.output_heads)
        if self.projections.rotary_width is not None and self.mixer.splits > 1:
            raise PlumblineError(
                f"model.mixer {model.slot('mixer').name!r} splits each head, and model.projections "
                f"{model.slot('projections').name!r} rotates a part of one; change one of the two"
            )

    @property
    def rotated_width(self) -> int:
        """Coordinates of a part of a head that positions rotate by itself."""
        return (self.projections.rotary_width or self.projections.head_width) // self.mixer.splits

    def forward(self, x_BTD: torch.Tensor, context: ForwardContext, positions: nn.Module) -> torch.Tensor:
        """What attention adds to the stream (B, T, D); `x_BTD` is its normalised input."""
        q_BHTW, k_BGTW, v_BGTW = self.projections(x_BTD)
        if context.wide_attention:
            q_BHTW, k_BGTW, v_BGTW = widen(q_BHTW), widen(k_BGTW), widen(v_BGTW)
        v_BGTW = self.values(v_BGTW, context)
        q_BHTW, k_BGTW = self.query_key(q_BHTW, k_BGTW)
        q_BHTW = self._rotate_queries(q_BHTW, context, positions)
        k_BGKW, v_BGKW = positions.rotate(k_BGTW, context, self.mixer.splits), v_BGTW
        if context.cache is not None:
            k_BGKW, v_BGKW = context.cache.extend(self.layer, k_BGKW, v_BGKW)
        k_BGKW, v_BGKW = self.projections.expand(k_BGKW, v_BGKW)
        if context.wide_attention:  # latents become keys and values by products of their own
            k_BGKW, v_BGKW = widen(k_BGKW), widen(v_BGKW)
        with without_autocast(q_BHTW) if context.wide_attention else nullcontext():
            out_BHTW = self.mixer(q_BHTW, k_BGKW, v_BGKW, context.attention_mask, context.cache)
        return self.projections.merge(self.output(out_BHTW, x_BTD))

    def _rotate_queries(self, q_BHTW: torch.Tensor, context: ForwardContext, positions: nn.Module) -> torch.Tensor:
        """Queries with their rotary coordinates rotated."""
        rotary = self.projections.rotary_width
        if rotary is None:
            return positions.rotate(q_BHTW, context, self.mixer.splits)
        content_BHTW, rotary_BHTR = q_BHTW.split([q_BHTW.shape[-1] - rotary, rotary], dim=-1)
        return torch.cat([content_BHTW, positions.rotate(rotary_BHTR, context, self.mixer.splits)], dim=-1)
