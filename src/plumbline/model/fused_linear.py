"""Several linear maps of one input as one product."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from plumbline.model.cpu_matmul import linear


def joined(x_BTD: torch.Tensor, maps: Sequence[nn.Linear]) -> tuple[torch.Tensor, ...]:
    """What each of `maps` makes of `x_BTD`, from one product with their matrices on top of each other.

    Each keeps a parameter of its own, for roles, optimizers and checkpoints: joining costs a copy of the matrices,
    which are small beside activations, and saves reading the input, and adding up its gradient, once a map. All of them
    have a bias, or none.
    """
    weight = torch.cat([one.weight for one in maps])
    bias = None if maps[0].bias is None else torch.cat([one.bias for one in maps])
    return linear(x_BTD, weight, bias).split([one.out_features for one in maps], dim=-1)
