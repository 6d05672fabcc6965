"""Runs a module as where only the wheel is:
``python -m tests.cli.without_pipeline_packages plumbline VERB ...``.

Modules of the extra `[pipeline]`, and `scipy.stats`, which takes longer to import than a verdict, cannot be imported.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from plumbline.core.pipeline_packages import MODULES

HIDDEN = MODULES | {"scipy.stats", "statsmodels"}


class Without(MetaPathFinder):
    """A finder, for which what is hidden is not there."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Ask the finder for all else."""
        return None if name in HIDDEN else self.finder.find_spec(name, path, target)


def hide() -> None:
    """Let this process import nothing of what is hidden."""
    sys.meta_path[:] = map(Without, sys.meta_path)


if __name__ == "__main__":
    hide()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
