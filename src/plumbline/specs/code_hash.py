"""Hashes code as far as numbers can depend on it: its syntax tree, without comments, docstrings and layout.

Two questions are answered here, both without importing anything:

- Which class is a component's code of? A component's code is its file, and of what it imports the files whose name
  begins with an underscore and the files of other components; of an installed one also whatever it imports of its own
  package, or, where it is a module by itself, of the modules next to it. Its class is the hash of their trees, or, for
  the components of this package, the one that `code_classes.json` gives it: the tool that records the golden losses
  writes down there which hashes were shown to give the same losses, so that a refactor retrains nothing.
- Which code made a table, figure or other product? The hash over its module and everything of this package that the
  module imports, so that a table is rebuilt when its own code changes and left alone when another's does.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path

from plumbline.core import package_data
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs.code_facts import parse_source, read_facts, read_source
from plumbline.specs.installed_packages import STUDIES
from plumbline.specs.study_folders import is_study

PACKAGE = Path(__file__).resolve().parents[1]

#: Hashes that golden losses proved equal: ``{"mixers.softmax": {hash: class}}``.
CLASSES = Path(__file__).with_name("code_classes.json")

#: Digits of a hash that are kept.
DIGITS = 16


def tree_hash(files: Iterable[Path]) -> str:
    """Hash the syntax trees of `files`, ordered by path; files of other packages come last, so that it does not matter
    where they are installed."""
    ordered = sorted(files, key=lambda path: (not _is_in_package(path), path))
    trees = [[path.name, read_facts(path).tree] for path in ordered]
    return sha256_text(canonical_json(trees))[:DIGITS]


def component_files(path: Path) -> list[Path]:
    """A component's code: its file and, directly or not, the files it imports that have an underscored name or hold a
    component; of an installed component also what it imports of its own package or, without one, from next to it."""

    def part(file: Path) -> bool:
        if not _is_in_package(file):
            return True
        return file.name != "__init__.py" and (file.name[0] == "_" or read_facts(file).is_component)

    return _list_closure(path, part)


def product_files(path: Path) -> list[Path]:
    """A module's file and all modules of this package that it imports, directly or not."""
    return _list_closure(path, lambda file: True)


def measurement_files(path: Path) -> list[Path]:
    """The file of a study's measurement and everything of this package that it imports, except for the rooms `core` and
    `specs`, which only read files and configuration."""
    return _list_closure(path, lambda file: file.parent not in (PACKAGE / "core", PACKAGE / "specs"))


def folder_files(path: Path, *, except_names: Collection[str] = ()) -> list[Path]:
    """A module's file and what it imports from its own folder, directly or not.

    Args:
        except_names: names of files that are left out, with what only they import.
    """
    return _list_closure(path, lambda file: file.parent == path.parent and file.name not in except_names)


def component_class(name: str, path: Path) -> str:
    """The class of a component's code; `name` is ``<folder>.<component>``, as in `code_classes.json`.

    Two versions of the code have the same class where `code_classes.json` records that they give the same losses.
    """
    tree = tree_hash(component_files(path))
    return classes().get(name, {}).get(tree, tree) if _is_in_package(path) else tree


@cache
def classes() -> dict[str, dict[str, str]]:
    """Read `code_classes.json`: component -> hash of its code -> class.

    Raises:
        PlumblineError: the file is not JSON.
    """
    try:
        return json.loads(CLASSES.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{CLASSES} is not JSON ({error}); restore it from the repository") from error


def _list_closure(start: Path, is_part: Callable[[Path], bool]) -> list[Path]:
    files, queue = {start}, [start]
    while queue:
        for path in _imports(queue.pop()):
            if path not in files and is_part(path):
                files.add(path)
                queue.append(path)
    return sorted(files)


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of this package, and of the one that the file is in, or next to it where it is in none, that a file imports
    anywhere, inside functions too."""
    package = package_of(path)
    names: set[str] = set()
    for statement in read_facts(path).imports:
        if statement.level is None:
            names |= set(statement.names)
        elif module := resolve_import(statement.level, statement.module, path, package):
            # What is imported may be a module itself, or a name of one.
            names |= {module} | {f"{module}.{name}" for name in statement.names}
        elif is_study(package):
            raise PlumblineError(
                f"{path}:{statement.line}: the import leads out of {package}, the study's folder; a study imports the "
                "engine and its own modules, so copy what another one has"
            )
    return tuple(file for name in sorted(names) if (file := file_of(name, package)) is not None)


def package_of(path: Path) -> Path:
    """The folder of the outermost package that a file is in, or of its study; of a module by itself, the module without
    its ending."""
    if _is_in_package(path):
        return PACKAGE
    outermost, is_package = path.with_suffix(""), True
    for folder in path.parents:
        if is_study(folder):
            return folder
        is_package = is_package and (folder / "__init__.py").is_file()
        outermost = folder if is_package else outermost
    return outermost


def _is_in_package(path: Path) -> bool:
    """Whether a file is a module of this package, and not of what a wheel carries next to its modules."""
    return path.is_relative_to(PACKAGE) and not path.is_relative_to(PACKAGE / package_data.COPY)


def resolve_import(level: int, module: str | None, path: Path, package: Path) -> str:
    """The full name of the module in ``from MODULE import ...``; empty if a relative import leads out of its
    package.

    Args:
        level: the dots before the module's name.
        module: that name; None after dots alone.
        path: the file that has the import.
        package: the folder of the outermost package that holds the file (`package_of`).
    """
    if level == 0:
        return module or ""
    folders = path.parent.relative_to(package.parent).parts
    folders = folders[: max(0, len(folders) - level + 1)]
    return ".".join([*folders, *([module] if module else [])]) if folders else ""


def file_of(module: str, importer: Path) -> Path | None:
    """The file of a module of this package, of `importer` or next to it; None if it is another package's, or nobody's.

    Raises:
        PlumblineError: it is a study, named in full.
    """
    if module.startswith(f"{STUDIES}."):
        raise PlumblineError(
            f"{importer} imports {module}: code of a study is imported by that study alone, and there as "
            "`from .module import name`; write it so, or copy what another study has"
        )
    first, *rest = module.split(".")
    package = {importer.name: importer, PACKAGE.name: PACKAGE}.get(first)
    if package is None:
        # What lies next to a module by itself is its own as well; of packages there those of other people.
        neighbour = importer.with_name(f"{first}.py")
        return neighbour if not rest and not importer.is_dir() and neighbour.is_file() else None
    place = package.joinpath(*rest)
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if (rest or package != PACKAGE) and path.is_file():
            return path
    return None


@cache
def parse(path: Path) -> ast.Module:
    """A file's syntax tree, parsed once per process; callers must not change it.

    Raises:
        PlumblineError: the file cannot be read, or is not Python.
    """
    return parse_source(read_source(path), path)
