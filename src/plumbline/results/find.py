"""A study's own parts, found by its name: nothing in the shared rooms lists the studies.

`plumbline.studies.<study>` holds `tables`, `figures`, `claims` and `audit`, each a module or a package.
A study that extends another one uses the parts of that one.
"""

from __future__ import annotations

from importlib import import_module, util
from types import ModuleType

from plumbline.cli import PlumblineError


def part(study: str, kind: str) -> ModuleType:
    """The module ``plumbline.studies.<study>.<kind>``.

    Raises:
        PlumblineError: the study has no such part.
    """
    name = f"plumbline.studies.{study}.{kind}"
    if not has(study, kind):
        raise PlumblineError(f"the study {study!r} has no {kind}: there is no module {name}")
    return import_module(name)


def has(study: str, kind: str) -> bool:
    """Whether a study has a part of this kind."""
    try:
        return util.find_spec(f"plumbline.studies.{study}.{kind}") is not None
    except ModuleNotFoundError:
        return False
