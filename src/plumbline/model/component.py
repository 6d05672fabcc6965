"""Builds the component that a model's spec names for a slot."""

from __future__ import annotations

from typing import Any

from plumbline.specs.components import load
from plumbline.specs.spec import ModelSpec


def build(slot: str, model: ModelSpec, *arguments: Any) -> Any:
    """Build the component that `model` names for `slot`, from `model`, `arguments` and the component's options."""
    chosen = model.slot(slot)
    return load(slot, chosen.name)(model, *arguments, **chosen.options)
