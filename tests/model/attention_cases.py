"""Mixers and inputs that the tests of attention share. Double precision, so that tolerances can be tight."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import torch

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import create
from plumbline.model.mixers._base import Mixer
from tests.model_specs import small

HEADS, GROUPS, WIDTH = 8, 2, 8


def mixer(name: str, *, layer: int = 1, noise: float = 0.3, **options: Any) -> Mixer:
    """One layer's mixer at the tests' size, its parameters moved off their start by `noise`."""
    built = copy.deepcopy(_build_mixer(layer, name, **options))
    generator = torch.Generator().manual_seed(11)
    for value in built.parameters():
        value.data += noise * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return built


@cache
def _build_mixer(layer: int, name: str, **options: Any) -> Mixer:
    """A model is built for it: once."""
    model = create(small(mixer={"name": name, **options}), init_seed=3)
    return model.blocks[layer].attention.mixer.double()


def inputs(
    length: int, *, groups: int = GROUPS, batch: int = 2, spread: float = 1.5, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries (B, H, T, W), keys and values (B, G, T, W), ready for gradients."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((batch, HEADS, length, WIDTH), (batch, groups, length, WIDTH), (batch, groups, length, WIDTH))
    spreads = (spread, spread, 1.0)
    return tuple(
        (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
        for shape, scale in zip(shapes, spreads, strict=True)
    )


def plain(length: int) -> AttentionMask:
    """Causal mask of one unpadded call."""
    return AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long), None, None)


def padded(length: int, left: int, right: int) -> AttentionMask:
    """Two rows: one with padding on the left, one with padding on the right."""
    padding_BT = torch.zeros(2, length, dtype=torch.bool)
    padding_BT[0, :left] = True
    padding_BT[1, length - right :] = True
    return AttentionMask.for_call(torch.zeros(2, length, dtype=torch.long), padding_BT, None)


def scores(q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, scale: float = WIDTH**-0.5) -> torch.Tensor:
    """Scaled dot products by a plain loop over heads."""
    per_group = q_BHQW.shape[1] // k_BGKW.shape[1]
    heads = [q_BHQW[:, h] @ k_BGKW[:, h // per_group].mT * scale for h in range(q_BHQW.shape[1])]
    return torch.stack(heads, dim=1)


def with_scores(scores_HQK: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys of one row whose scaled scores are the given ones (at most WIDTH keys, all groups alike)."""
    heads, queries, keys = scores_HQK.shape
    assert keys <= WIDTH
    q = torch.zeros(1, heads, queries, WIDTH, dtype=torch.float64)
    q[0, :, :, :keys] = scores_HQK * WIDTH**0.5
    k = torch.eye(WIDTH, dtype=torch.float64)[:keys].expand(1, GROUPS, keys, WIDTH)
    return q, k
