"""Stands in for `plumbline.specs.spec` in an exported folder, whose spec was checked before it was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A choice for one slot: a component's name and all of its options."""

    name: str
    options: dict[str, Any]


class ModelSpec:
    """Sizes of a decoder, as attributes, and a component for each of its slots."""

    shared_layers = False

    def __init__(self, sizes: dict[str, Any], slots: dict[str, dict[str, Any]]) -> None:
        self.__dict__.update(sizes)
        self.slots = slots

    def slot(self, name: str) -> ComponentSpec:
        """The component chosen for a slot."""
        chosen = dict(self.slots[name])
        return ComponentSpec(name=chosen.pop("name"), options=chosen)

    def resize(self, **sizes: int) -> ModelSpec:
        """A copy of the spec with some of its sizes replaced."""
        return ModelSpec({key: value for key, value in vars(self).items() if key != "slots"} | sizes, self.slots)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> ModelSpec:
        """Read a model from the flat form: sizes and slots side by side; a slot is what has a name and options."""
        slots = {key: value for key, value in content.items() if isinstance(value, dict)}
        return cls({key: value for key, value in content.items() if key not in slots}, slots)
