"""Stands in for `plumbline.specs.components` in an exported folder: the components are those of one model."""

from __future__ import annotations

from typing import Any, TypeVar

Marked = TypeVar("Marked", bound=Any)


def component(marked: Marked) -> Marked:
    """Mark the one class of a component's file; in an exported folder it stays unchanged."""
    return marked


def load(kind: str, name: str) -> Any:
    """The class of a component, by its slot and name."""
    # Components import this module: theirs are imported when the first one is asked for.
    from plumbline.model.export.carried.chosen_components import COMPONENTS

    return COMPONENTS[kind, name]
