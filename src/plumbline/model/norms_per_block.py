"""How many norms a block has, from its modules: what stands there and has a gain, not what a spec is called."""

from __future__ import annotations

from plumbline.model.decoder import Decoder, on_meta
from plumbline.specs.spec import ModelSpec


def norms_per_block(spec: ModelSpec) -> float:
    """Norm modules of all blocks over the number of blocks; the norm before the head is in none of them."""
    return sum(len(names) for names in norm_modules(on_meta(spec)).values()) / spec.layers


def norm_modules(model: Decoder) -> dict[int, list[str]]:
    """Layer -> names of its modules that hold a norm's gain."""
    found: dict[int, list[str]] = {layer: [] for layer in range(model.spec.layers)}
    for name, role in model.parameter_roles.items():
        if role.role == "norm" and role.layer is not None:
            found[role.layer].append(name.rpartition(".")[0])
    return {layer: sorted(set(names)) for layer, names in found.items()}
