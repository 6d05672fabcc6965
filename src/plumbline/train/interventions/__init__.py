"""Holds the interventions of the training loop, one component file each; `_base` has the interface."""

from __future__ import annotations

from typing import Any

from plumbline.specs.components import load
from plumbline.train.interventions._base import Intervention, InterventionInputs

__all__ = ["Intervention", "InterventionInputs", "build"]


def build(specs: tuple[dict[str, Any], ...]) -> list[Intervention]:
    """Build the interventions of a spec, in its order.

    Each is ``{"name": ..., every option}``, as the spec checked it.
    """
    hooks = []
    for given in specs:
        hook = load("intervention", given["name"])(**{key: value for key, value in given.items() if key != "name"})
        hook.name = given["name"]
        hooks.append(hook)
    return hooks
