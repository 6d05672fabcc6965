"""Where norms stand around a layer's two sublayers (0: attention, 1: FFN).

    stream -> enter -> (read) -> before -> sublayer -> after -> (write) -> leave -> stream

`enter` and `leave` change the residual stream itself and are called only where `changes_stream` says so.
"""

from __future__ import annotations

import torch
from torch import nn


class Placement(nn.Module):
    """Identity at every place; a subclass overrides what it needs."""

    #: Whether the stream itself is normalised; such a placement needs a residual with a single stream.
    changes_stream = False

    def enter(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """The stream before a sublayer reads it."""
        return x_BTD

    def before(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """What the sublayer is given."""
        return x_BTD

    def after(self, sublayer: int, branch_BTD: torch.Tensor) -> torch.Tensor:
        """What the sublayer adds to the stream."""
        return branch_BTD

    def leave(self, sublayer: int, x_BTD: torch.Tensor) -> torch.Tensor:
        """The stream after the sublayer was added."""
        return x_BTD
