"""Defines the base of projections: from the stream to queries, keys and values, and from heads back to it."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.specs.spec import ModelSpec


class Projections(nn.Module):
    """Base of projections. A subclass defines `forward` and a map `output` from the mixer's heads to the stream.

    The keys and values that `forward` gives are what decoding remembers of a token, after positions were applied to the
    keys. Where that is a compressed form, `expand` makes keys and values of it.
    """

    output: nn.Linear
    #: How many of a query's last coordinates positions rotate; None: all of them.
    rotary_width: int | None = None

    def __init__(self, model: ModelSpec) -> None:
        super().__init__()
        self.head_width = model.head_width

    def forward(self, x_BTD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (B, H, T, W), and keys and values (B, G, T, W) or their compressed form."""
        raise TypeError(f"{type(self).__name__} defines no projections")

    def expand(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (B, G, K, W), made from what decoding remembers of the tokens so far, after positions."""
        return k, v

    def merge(self, out_BHTW: torch.Tensor) -> torch.Tensor:
        """Project head outputs back to the width of the stream (B, T, D)."""
        return self.output(out_BHTW.transpose(1, 2).flatten(-2))

    def heads(self, x_BTX: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """Split concatenated heads apart (B, H, T, W), each of `width` (by default the model's head width)."""
        return x_BTX.unflatten(-1, (-1, width or self.head_width)).transpose(1, 2)
