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
    for intervention in specs:
        hook = load("intervention", intervention["name"])(
            **{key: value for key, value in intervention.items() if key != "name"}
        )
        hook.name = intervention["name"]
        hooks.append(hook)
    return hooks
