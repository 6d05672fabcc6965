"""Rotary positions, rotate-half convention: coordinate i is paired with i + width / 2."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.context import ForwardContext
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Rotary(nn.Module):
    """Rotates queries and keys by angles position * base^(-2i / width). Adds nothing to the embedding."""

    def __init__(self, model: ModelSpec, *, base: float = 10000.0) -> None:
        super().__init__()
        self.base = base

    def embed(self, x_BTD: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """The embedding as it is."""
        return x_BTD

    def rotate(self, x_BHTW: torch.Tensor, context: ForwardContext, splits: int = 1) -> torch.Tensor:
        """Rotate this call's queries or keys; with `splits`, each part of a head on its own.

        A head must be split before it is rotated: a half of a rotated head holds one coordinate of each pair.
        """
        parts = x_BHTW.unflatten(-1, (splits, -1)).float()
        cosine, sine = self._rotation(parts.shape[-1], context)
        first, second = parts.chunk(2, dim=-1)
        rotated = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
        return rotated.flatten(-2).to(x_BHTW.dtype)

    def _rotation(self, width: int, context: ForwardContext) -> tuple[torch.Tensor, torch.Tensor]:
        if width not in context.rotations:
            positions_BT = context.visibility.query_positions_BQ.float()
            powers = torch.arange(0, width, 2, device=positions_BT.device).float() / width
            angles = positions_BT[:, None, :, None, None] * self.base**-powers
            context.rotations[width] = (angles.cos(), angles.sin())
        return context.rotations[width]
