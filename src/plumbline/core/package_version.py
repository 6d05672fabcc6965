"""Says which version of a package this process uses."""

from __future__ import annotations

import sys
from importlib import metadata

#: Distributions whose module has another name.
_MODULES = {"plumbline-lm": "plumbline"}


def version(distribution: str) -> str:
    """The version of the code that is loaded, or that would be: one installed meanwhile is not what computes here.

    Raises:
        importlib.metadata.PackageNotFoundError: it is neither loaded nor installed.
    """
    loaded = sys.modules.get(_MODULES.get(distribution, distribution))
    stated = getattr(loaded, "__version__", None)
    return metadata.version(distribution) if stated is None else str(stated)
