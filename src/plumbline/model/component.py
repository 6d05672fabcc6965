"""Components by name: the mark every component's class carries, and the one place that builds them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any, TypeVar

from torch import nn

from plumbline.specs.components import SLOTS, available
from plumbline.specs.spec import ModelSpec

Class = TypeVar("Class", bound=type)


def component(cls: Class) -> Class:
    """Mark the one class of a component's file. Its keyword-only arguments are its options in the YAML."""
    cls.__component__ = True
    return cls


def component_class(slot: str, name: str) -> type[nn.Module]:
    """The class behind a component's name."""
    path = available(slot)[name]
    module_name = f"plumbline.model.{SLOTS[slot]}.{name}"
    if importlib.util.find_spec(module_name) is not None:
        module = importlib.import_module(module_name)
    else:  # an installed package's: loaded from the file its entry point names
        module_name = f"plumbline_component_{SLOTS[slot]}_{name}"
        specification = importlib.util.spec_from_file_location(module_name, path)
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[module_name] = module
        specification.loader.exec_module(module)
    marked = [value for value in vars(module).values() if _marked_in(value, module.__name__)]
    assert len(marked) == 1, f"{path}: one @component class expected"
    return marked[0]


def _marked_in(value: Any, module_name: str) -> bool:
    """Whether `value` is a component's class that was written in this very module, not imported into it."""
    return isinstance(value, type) and "__component__" in vars(value) and value.__module__ == module_name


def build(slot: str, model: ModelSpec, *arguments: Any) -> Any:
    """Build the component that `model` names for `slot`: positional `arguments` first, its options by keyword."""
    chosen = model.slot(slot)
    return component_class(slot, chosen.name)(model, *arguments, **chosen.options)
