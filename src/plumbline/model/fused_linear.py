"""Computes several linear maps of one input as one product."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from plumbline.model.cpu_matmul import linear


def fused_linear(x_BTD: torch.Tensor, maps: Sequence[nn.Linear]) -> tuple[torch.Tensor, ...]:
    """The outputs of several linear maps of `x_BTD`, computed as one product with their matrices stacked.

    Each map keeps a parameter of its own, for roles, optimizers and checkpoints. Stacking costs a copy of the matrices,
    which are small next to activations, and saves reading the input, and adding up its gradient, once per map. Either
    all of the maps have a bias, or none.
    """
    weight = torch.cat([one.weight for one in maps])
    bias = None if maps[0].bias is None else torch.cat([one.bias for one in maps])
    return linear(x_BTD, weight, bias).split([one.out_features for one in maps], dim=-1)
