"""Implements rotary positions, rotate-half convention: coordinate i is paired with i + width / 2."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.context import ForwardContext
from plumbline.model.float32_widening import without_autocast
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec

#: Parts of a head that are narrower are turned whole on a processor: their halves are runs too short for its vectors.
NARROW = 16


@component
class Rotary(nn.Module):
    """Rotates queries and keys by angles position * base^(-2i / width). Adds nothing to the embedding."""

    def __init__(self, model: ModelSpec, *, base: float = 10000.0) -> None:
        super().__init__()
        self.base = base

    def embed(self, x_BTD: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """Return the embedding unchanged."""
        return x_BTD

    def prepare(self, width: int, context: ForwardContext) -> None:
        """Compute the rotations by `width` coordinates for all layers of a call, before the first one: made by it they
        would tell it from the others, and torch.compile would make a graph of it alone."""
        self._cosines_and_sines(width, context)

    def rotate(self, x_BHTW: torch.Tensor, context: ForwardContext, splits: int = 1) -> torch.Tensor:
        """Rotate this call's queries or keys (B, H, T, W); with `splits`, each of so many parts of a head on its own.

        A head must be split before it is rotated: a half of a rotated head holds one coordinate of each pair.
        """
        parts = x_BHTW.unflatten(-1, (splits, -1)).float()
        width = parts.shape[-1]
        if x_BHTW.device.type == "cpu" and not torch.compiler.is_compiling():
            if width < NARROW:
                rotated_BHTW: torch.Tensor = RotationFunction.apply(
                    x_BHTW.float(), *self._whole_head_rotation(width, context, splits), splits
                )
                return rotated_BHTW.to(x_BHTW.dtype)
            if not torch.is_grad_enabled():  # the same numbers in fewer passes over them
                return _rotate_halves(x_BHTW.float(), *self._whole_head_rotation(width, context, splits), splits).to(
                    x_BHTW.dtype
                )
        cosine, sine = self._cosines_and_sines(width, context)
        first, second = parts.chunk(2, dim=-1)
        rotated = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
        return rotated.flatten(-2).to(x_BHTW.dtype)

    def _cosines_and_sines(self, width: int, context: ForwardContext) -> tuple[torch.Tensor, torch.Tensor]:
        if width not in context.rotations:
            positions_BT = context.attention_mask.query_positions_BQ.float()
            powers = torch.arange(0, width, 2, device=positions_BT.device).float() / width
            angles = positions_BT[:, None, :, None, None] * self.base**-powers
            context.rotations[width] = (angles.cos(), angles.sin())
        return context.rotations[width]

    def _whole_head_rotation(
        self, width: int, context: ForwardContext, splits: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of whole heads (B or 1, 1, T, W), sines of first halves negative."""
        if (width, splits) not in context.whole_rotations:
            cosine, sine = self._cosines_and_sines(width, context)
            pairs = (cosine, cosine), (-sine, sine)
            cosines, sines = (torch.cat(pair, dim=-1).expand(-1, -1, -1, splits, -1).flatten(-2) for pair in pairs)
            context.whole_rotations[width, splits] = (cosines, sines)
        return context.whole_rotations[width, splits]


class RotationFunction(torch.autograd.Function):
    """Rotation of narrow heads as x cos + swapped(x) sin, an autograd function.

    A product with a matrix of zeros and ones, which is exact, swaps the halves of each part of a head; the sines (B or
    1, 1, T, W) of first halves are negative. The gradient is rotated back.
    """

    @staticmethod
    def forward(ctx, x_BHTW: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, splits: int) -> torch.Tensor:
        """Rotate `x_BHTW`, each of `splits` parts of a head on its own."""
        ctx.save_for_backward(cosine, sine)
        ctx.splits = splits
        return _rotate_halves(x_BHTW, cosine, sine, splits)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy_BHTW: torch.Tensor):
        """Rotate the gradient back by the negative angle."""
        cosine, sine = ctx.saved_tensors
        return _rotate_halves(dy_BHTW, cosine, -sine, ctx.splits), None, None, None


def _rotate_halves(x_BHTW: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, splits: int) -> torch.Tensor:
    width = x_BHTW.shape[-1]
    if width // splits >= NARROW:
        first, second = x_BHTW.unflatten(-1, (splits, -1)).chunk(2, dim=-1)
        return torch.cat([second, first], dim=-1).flatten(-2).mul_(sine).add_(x_BHTW * cosine)
    swapped = torch.arange(width).unflatten(0, (splits, 2, -1)).flip(1).flatten()
    with without_autocast(x_BHTW):
        return (x_BHTW @ torch.eye(width, dtype=x_BHTW.dtype)[swapped]).mul_(sine).add_(x_BHTW * cosine)
