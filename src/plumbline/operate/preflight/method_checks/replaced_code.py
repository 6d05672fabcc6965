"""Notices a component that replaces code which is not its own: the loss, the evaluation, the checks, torch's functions.

Taken before components are imported and compared after they ran: what a name stood for and stands for now.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

#: The name of the check.
CHECK = "replaced code"
#: Modules of torch whose functions are compared beside all of Plumbline's.
TORCH = ("torch", "torch.nn.functional", "torch.autograd", "torch.special")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, staticmethod, classmethod, property)

Names = dict[str, Any]


def taken() -> Names:
    """Note what every function and method stands for, by its whole name."""
    return dict(_named())


def replaced(before: Names) -> str | None:
    """Name the first function that another one stands for since; None where all are as they were."""
    for name, value in _named():
        if before.get(name, value) is not value:
            return f"{name} is replaced by other code while the component is loaded or called: leave it as it is"
    return None


def _named() -> Iterator[tuple[str, Any]]:
    for name, module in list(sys.modules.items()):
        if module is None or not (name in TORCH or name.startswith("plumbline.")):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, _FUNCTIONS):
                yield f"{name}.{key}", value
            elif isinstance(value, type) and value.__module__ == name and name.startswith("plumbline."):
                for own, method in list(vars(value).items()):
                    if isinstance(method, _FUNCTIONS):
                        yield f"{name}.{key}.{own}", method
