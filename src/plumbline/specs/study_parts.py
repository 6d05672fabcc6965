"""A study's own parts, found by its name: nothing in the shared rooms lists the studies or what they make.

A study's folder holds `tables`, `figures`, `measurements`, `claims` and `audit`, each a module or a folder of modules.
A table, figure or measurement is a function of its own name: in a module of that name inside the folder, or in the
part itself.
A study that extends another one uses the parts of that one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import code_facts, study_code, study_folders
from plumbline.specs.study_folders import folder
from plumbline.specs.yaml_files import ROOT


def files(study: str, kind: str, root: Path = ROOT) -> list[Path]:
    """The files of a part (`kind`, such as `tables`) of a study's code: a module, or all of a package, or none."""
    module, package = folder(study, root) / f"{kind}.py", folder(study, root) / kind
    return [module] if module.is_file() else sorted(package.rglob("*.py"))


def file(study: str, kind: str, target: str, root: Path = ROOT) -> Path:
    """The file that defines a table, figure or measurement, found without running anything.

    Raises:
        PlumblineError: the study has no such part, or its part no such function.
    """
    own = folder(study, root) / kind / f"{target}.py"
    # A folder may have no `__init__.py`: each function then stands in a file of its name.
    path = own if own.is_file() or _find_module(study, kind, root) is None else _require_module(study, kind, root)
    if not path.is_file() or target not in _list_defined(path):
        names = targets(study, kind, root)
        raise PlumblineError(
            f"{path}: there is no function {target!r}{nearest(target, names)} (the study's {kind} are {names}); write "
            "it, or drop it from the study's YAML"
        )
    return path


def function(study: str, kind: str, target: str, root: Path = ROOT) -> Callable[..., Any]:
    """The function that makes a table, figure or measurement.

    Raises:
        PlumblineError: there is none, or it cannot be imported.
    """
    return getattr(study_code.load(file(study, kind, target, root), study, root), target)


def targets(study: str, kind: str, root: Path = ROOT) -> list[str]:
    """Names that a study's code has for tables or figures: public modules of the package, functions of the part."""
    modules = [path.stem for path in (folder(study, root) / kind).glob("*.py")]
    body = _read_body(_require_module(study, kind, root)) if _find_module(study, kind, root) or not modules else []
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    return sorted({name for name in [*modules, *functions] if not name.startswith("_")})


def has(study: str, kind: str, root: Path = ROOT) -> bool:
    """Whether a study has a part of this kind."""
    return bool(files(study, kind, root))


def part(study: str, kind: str, root: Path = ROOT) -> ModuleType:
    """The module ``plumbline.studies.<study>.<kind>``.

    Raises:
        PlumblineError: the study has no such part, or it cannot be imported.
    """
    return study_code.load(_require_module(study, kind, root), study, root)


def _find_module(study: str, kind: str, root: Path) -> Path | None:
    """The module of a part, or its package's ``__init__``; None if there is neither."""
    place = folder(study, root)
    return next((path for path in (place / f"{kind}.py", place / kind / "__init__.py") if path.is_file()), None)


def _require_module(study: str, kind: str, root: Path) -> Path:
    """As `_find_module`.

    Raises:
        PlumblineError: there is none.
    """
    module = _find_module(study, kind, root)
    if module is None:
        place = folder(study, root)
        raise PlumblineError(
            "; ".join(
                [
                    f"the study {study!r} has no {kind}: there is neither {place / kind}.py nor a package of that name",
                    *study_folders.misspelt(place),
                ]
            )
        )
    return module


def _read_body(path: Path) -> list[ast.stmt]:
    return code_facts.parse_source(code_facts.read_source(path), path).body


def _list_defined(path: Path) -> set[str]:
    """What a module defines as functions, or imports by name."""
    body = _read_body(path)
    imported = [alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return {node.name for node in body if isinstance(node, ast.FunctionDef)} | set(imported)
