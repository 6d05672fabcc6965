"""Runs a module as where the wheel brought its own packages alone: ``python -m tests.cli.light plumbline VERB ...``.

Modules of the extra `[pipeline]`, and `scipy.stats`, which takes longer to import than a verdict, cannot be imported.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from plumbline.core.pipeline_packages import MODULES

HIDDEN = MODULES - {"markdown_it"} | {"scipy.stats", "statsmodels"}  # rich brings markdown_it


class Hidden(MetaPathFinder):
    """Finds nothing, and says so before any other finder is asked."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Refuse what is hidden."""
        if name in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, Hidden())
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
