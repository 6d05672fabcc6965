"""Finds a study's own code by the study's name: nothing in the shared rooms lists the studies or what they make.

`plumbline.studies.<study>` holds `tables`, `figures`, `measurements`, `claims` and `audit`, each a module or a package.
A table, figure or measurement is a function of its own name: in a module of that name inside the package, or in the
part itself. A study that extends another one uses the parts of that one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from plumbline.core.errors import PlumblineError, nearest

#: The folder with a package for each study.
STUDIES = Path(__file__).resolve().parents[1] / "studies"


def files(study: str, kind: str) -> list[Path]:
    """The files of a part (`kind`, such as `tables`) of a study's code: a module, or all of a package, or none."""
    module, package = STUDIES / study / f"{kind}.py", STUDIES / study / kind
    return [module] if module.is_file() else sorted(package.rglob("*.py"))


def file(study: str, kind: str, target: str) -> Path:
    """The file that defines a table, figure or measurement, found without running anything.

    Raises:
        PlumblineError: the study has no such part, or its part no such function.
    """
    own = STUDIES / study / kind / f"{target}.py"
    found = own if own.is_file() else _whole(study, kind)
    if target not in _defined(found):
        known = targets(study, kind)
        raise PlumblineError(
            f"{found}: there is no function {target!r}{nearest(target, known)} (the study's {kind} are {known}); write "
            "it, or drop it from the study's YAML"
        )
    return found


def function(study: str, kind: str, target: str) -> Callable[..., Any]:
    """The function that makes a table, figure or measurement.

    Raises:
        PlumblineError: there is none.
    """
    found = file(study, kind, target)
    inside = ".".join(found.relative_to(STUDIES).with_suffix("").parts).removesuffix(".__init__")
    return getattr(import_module(f"plumbline.studies.{inside}"), target)


def targets(study: str, kind: str) -> list[str]:
    """Names that a study's code has for tables or figures: public modules of the package, functions of the part."""
    modules = [path.stem for path in (STUDIES / study / kind).glob("*.py")]
    functions = [node.name for node in _body(_whole(study, kind)) if isinstance(node, ast.FunctionDef)]
    return sorted({name for name in [*modules, *functions] if not name.startswith("_")})


def has(study: str, kind: str) -> bool:
    """Whether a study has a part of this kind."""
    return bool(files(study, kind))


def part(study: str, kind: str) -> ModuleType:
    """The module ``plumbline.studies.<study>.<kind>``.

    Raises:
        PlumblineError: the study has no such part.
    """
    _whole(study, kind)
    return import_module(f"plumbline.studies.{study}.{kind}")


def _whole(study: str, kind: str) -> Path:
    """The module of a part, or its package's ``__init__``."""
    for path in files(study, kind):
        if path in (STUDIES / study / f"{kind}.py", STUDIES / study / kind / "__init__.py"):
            return path
    raise PlumblineError(
        f"the study {study!r} has no {kind}: there is neither {STUDIES / study / kind}.py nor a package of that name"
    )


def _body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path)).body


def _defined(path: Path) -> set[str]:
    """What a module defines as functions, or imports by name."""
    body = _body(path)
    imported = [alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return {node.name for node in body if isinstance(node, ast.FunctionDef)} | set(imported)
