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
    weight = torch.cat([linear_map.weight for linear_map in maps])
    bias = None if maps[0].bias is None else torch.cat([linear_map.bias for linear_map in maps])
    return linear(x_BTD, weight, bias).split([linear_map.out_features for linear_map in maps], dim=-1)
