"""Defines where norms stand around a layer's two sublayers (0: attention, 1: FFN).

    stream -> enter -> (read) -> before -> sublayer -> after -> (write) -> leave -> stream

`enter` and `leave` change the residual stream itself and are called only where `changes_stream` says so.
"""

from __future__ import annotations

import torch
from torch import nn


class Placement(nn.Module):
    """The base of norm placements: no norm at any place; a subclass overrides the places where it has one."""

    #: Whether the stream itself is normalised; such a placement needs a residual with a single stream.
    changes_stream = False

    def enter(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """The residual stream (B, T, D) as it is changed before a sublayer reads it."""
        return x_BTD

    def before(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """The sublayer's input (B, T, D), from what it read of the stream."""
        return x_BTD

    def after(self, sublayer: int, branch_BTD: torch.Tensor) -> torch.Tensor:
        """The sublayer's contribution to the stream (B, T, D), from its output."""
        return branch_BTD

    def leave(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """The residual stream (B, T, D) as it is changed after the sublayer's contribution was added."""
        return x_BTD
