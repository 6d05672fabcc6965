"""Imports a study's own parts, found by its name: nothing in the shared rooms lists studies or what they make.

`plumbline.studies.<study>` is the folder of that study, wherever it lies: it need not be on Python's path, nor hold an
`__init__.py`; inside, relative imports work as in any package.

A study's folder holds `tables`, `figures`, `measurements`, `claims` and `audit`, each a module or a folder of modules.
A table, figure or measurement is a function of its own name: in a module of that name inside the folder, or in the
part itself.
A study that extends another one uses the parts of that one. A table or figure that studies share, and that a study has
no function for, is a module of `plumbline.verdict.small_models.targets`.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import code_facts, study_folders
from plumbline.specs.study_folders import folder
from plumbline.specs.yaml_files import ROOT

PACKAGE = "plumbline.studies"
#: The package of targets that studies share, and its folder.
COMMON = "plumbline.verdict.small_models.targets"
_COMMON_FOLDER = Path(__file__).resolve().parents[2].joinpath(*COMMON.split("."))


class StudyFinder:
    """Finds the package of each study for Python's imports, and keeps apart what two projects call by one name."""

    def __init__(self) -> None:
        #: Study -> the folder that it is imported from. Modules of another folder wait until that one is wanted again.
        self._folders: dict[str, Path] = {}
        self._waiting: dict[Path, dict[str, ModuleType]] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """What Python asks of each finder: where the package is; None for all that is not a study."""
        package, _, study = name.rpartition(".")
        if package != PACKAGE:
            return None
        if study not in self._folders:
            by_name = study_folders.folders(ROOT)
            if study not in by_name:
                return None
            self._folders[study] = by_name[study]
        folder = self._folders[study]
        if (folder / "__init__.py").is_file():
            return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec

    def choose(self, study: str, folder: Path) -> None:
        """Let a study be imported from this folder from now on."""
        old_folder = self._folders.get(study)
        if old_folder == folder:
            return
        name = f"{PACKAGE}.{study}"
        names = [each for each in sys.modules if each == name or each.startswith(f"{name}.")]
        modules = {each: sys.modules.pop(each) for each in names}
        if old_folder is not None:
            self._waiting[old_folder] = modules
        sys.modules.update(self._waiting.pop(folder, {}))
        self._folders[study] = folder


FINDER = StudyFinder()


def load_module(path: Path, study: str, root: Path) -> ModuleType:
    """Import a module of a study: `path` is its file.

    Raises:
        PlumblineError: it cannot be imported.
    """
    folder = study_folders.folder(study, root)
    FINDER.choose(study, folder)
    module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix("__init__").rstrip(".")
    try:
        return importlib.import_module(f"{PACKAGE}.{study}.{module}")
    except PlumblineError:
        raise
    except (Exception, SystemExit) as error:
        where = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else path
        raise PlumblineError(
            f"the study {study!r} cannot be imported ({where}): {type(error).__name__}: {error}; fix it, or take its "
            "folder away"
        ) from error


def files(study: str, kind: str, root: Path = ROOT) -> list[Path]:
    """The files of a part (`kind`, such as `tables`) of a study's code: a module, or all of a package, or none."""
    module, package = folder(study, root) / f"{kind}.py", folder(study, root) / kind
    return [module] if module.is_file() else sorted(package.rglob("*.py"))


def file(study: str, kind: str, target: str, root: Path = ROOT) -> Path:
    """The file that defines a table, figure or measurement, found without running anything.

    Raises:
        PlumblineError: the study has no such part, or its part no such function.
    """
    own_file = folder(study, root) / kind / f"{target}.py"
    # A folder may have no `__init__.py`: each function then stands in a file of its name.
    path = (
        own_file
        if own_file.is_file() or _find_module(study, kind, root) is None
        else _require_module(study, kind, root)
    )
    is_defined = path.is_file() and target in _list_defined(path)
    if not is_defined and (common_file := _COMMON_FOLDER / f"{target}.py").is_file():
        return common_file
    if not is_defined:
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
    path = file(study, kind, target, root)
    if path.parent == _COMMON_FOLDER:
        return getattr(importlib.import_module(f"{COMMON}.{target}"), target)
    return getattr(load_module(path, study, root), target)


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
    return load_module(_require_module(study, kind, root), study, root)


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
    imported_names = [
        alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    return {node.name for node in body if isinstance(node, ast.FunctionDef)} | set(imported_names)
