"""Looks at a model's weights as a whole, whether one rank holds them or each its rows: kind, finiteness, one piece."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.runtime.distributed import RankGroup, full


def is_sharded(model: nn.Module) -> bool:
    """Whether any parameter of a model is cut into rows that different ranks hold."""
    return any(hasattr(value, "full_tensor") for value in model.parameters())


def finite(model: nn.Module, ranks: RankGroup) -> bool:
    """Whether every weight is a finite number, on every rank (a collective)."""
    with torch.no_grad():
        values = [value.to_local() if hasattr(value, "to_local") else value for value in model.parameters()]
        bad = sum(int(not bool(torch.isfinite(value).all())) for value in values)
    return ranks.sum([float(bad)])[0] == 0


def whole(model: nn.Module, ranks: RankGroup) -> dict[str, torch.Tensor]:
    """Gather all weights in one piece on the CPU of rank 0, which writes them (a collective if they are sharded)."""
    pieces = {}
    for name, value in model.named_parameters():
        piece = full(value.detach())
        if ranks.leader:
            pieces[name] = piece.cpu()
    return pieces
