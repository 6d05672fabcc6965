"""Initialises parameters, in one place: each is seeded by its own name, so that two models which share a tensor start
with the same values in it, whatever else they have.

| parameter                     | start                                             |
|-------------------------------|---------------------------------------------------|
| matrices and embeddings       | N(0, init_std^2)                                  |
| maps into the residual stream | the same, over sqrt(2 layers) where asked for     |
| norm gains                    | 1                                                 |
| biases                        | 0                                                 |
| scalars and vectors           | what their component says (`init=` in its file)   |
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import nn

from plumbline.model.roles import ConstantInit, ExplicitInit, Init, NormalInit, collect_roles
from plumbline.specs.spec import ModelSpec


def seed_of(init_seed: int, name: str) -> int:
    """The 63-bit seed of the parameter called `name`."""
    digest = hashlib.sha256(f"init:{init_seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def initialise(model: nn.Module, init_seed: int) -> None:
    """Fill every parameter of a model in place, drawing on the CPU so that the device does not matter."""
    starts = collect_roles(model)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(initial_value(starts[name].init, value.shape, init_seed, name, model.spec))


def initial_value(init: Init, shape: torch.Size, init_seed: int, name: str, spec: ModelSpec) -> torch.Tensor:
    """The starting value of one parameter, float32 on the CPU."""
    if isinstance(init, ConstantInit):
        return torch.full(shape, init.value, device="cpu")
    if isinstance(init, ExplicitInit):
        return torch.tensor(init.values, device="cpu").reshape(shape)
    assert isinstance(init, NormalInit), f"{name}: unknown kind of start {init!r}"
    std = spec.init_std if init.std is None else init.std
    if init.residual and spec.residual_init_scaling:
        std /= math.sqrt(2 * spec.layers)
    generator = torch.Generator(device="cpu").manual_seed(seed_of(init_seed, name))
    return torch.empty(shape, device="cpu").normal_(0.0, std, generator=generator)
