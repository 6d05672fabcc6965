"""Things chosen by name in a spec, one file each: the file's name is the thing's name."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path
from types import ModuleType

from plumbline.cli import PlumblineError


def names(folder: str) -> list[str]:
    """What a folder of this package offers."""
    files = (Path(__file__).resolve().parent / folder).glob("*.py")
    return sorted(path.stem for path in files if not path.stem.startswith("_"))


def load(folder: str, name: str, key: str) -> ModuleType:
    """The module of the thing called `name`; `key` is the spec's key that chose it.

    Raises:
        PlumblineError: there is no such file.
    """
    known = names(folder)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise PlumblineError(f"{key}: there is no {name!r}{hint} (there are {known})")
    return importlib.import_module(f"plumbline.train.{folder}.{name}")
