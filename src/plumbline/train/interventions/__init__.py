"""Interventions of the training loop, one file each; `_base` has the interface."""

from __future__ import annotations

from typing import Any

from plumbline.cli import PlumblineError
from plumbline.train import registry
from plumbline.train.interventions._base import Attachment, Intervention, Null

__all__ = ["Attachment", "Intervention", "Null", "build"]


def build(specs: tuple[dict[str, Any], ...]) -> list[Intervention]:
    """The interventions of a spec, in its order; each is ``{"name": ..., options...}``."""
    built = []
    for number, given in enumerate(specs):
        key = f"interventions[{number}]"
        options = dict(given)
        if "name" not in options:
            raise PlumblineError(f"{key}: 'name' is missing (one of {registry.names('interventions')})")
        module = registry.load("interventions", options.pop("name"), f"{key}.name")
        try:
            built.append(module.build(**options))
        except TypeError as error:
            raise PlumblineError(f"{key}: {error}") from error
    return built
