"""What a new process would know: nothing that an earlier one read."""

from __future__ import annotations

from types import ModuleType


def forget(*modules: ModuleType) -> None:
    """Clear every cache of these modules' functions, which read once a process what a test edits."""
    for module in modules:
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
