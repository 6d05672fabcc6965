"""Counts the norms of a block from its modules that have a norm's gain, whatever the spec calls them."""

from __future__ import annotations

from plumbline.model.decoder import Decoder, on_meta
from plumbline.specs.spec import ModelSpec


def norms_per_block(spec: ModelSpec) -> float:
    """Number of norm modules in all blocks divided by the number of blocks; the norm before the head is in no block."""
    return sum(len(names) for names in norm_modules(on_meta(spec)).values()) / spec.layers


def norm_modules(model: Decoder) -> dict[int, list[str]]:
    """Layer -> names of its modules that hold a norm's gain."""
    names_by_layer: dict[int, list[str]] = {layer: [] for layer in range(model.spec.layers)}
    for name, role in model.parameter_roles.items():
        if role.role == "norm" and role.layer is not None:
            names_by_layer[role.layer].append(name.rpartition(".")[0])
    return {layer: sorted(set(names)) for layer, names in names_by_layer.items()}
