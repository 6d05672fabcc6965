"""Collects the sources that a model runs, as flat modules that import one another relatively, and nothing of this
package.

transformers copies the files of a folder that lines like `from .module import name` lead to, and imports the copies; it
knows no folders within. So the modules of this package that a model needs, and those of the packages that bring its
components, are found by their imports, as `plumbline.specs.code_hash` finds them, and written side by side:
`plumbline/model/mixers/softpick.py` gets the file name of its path, with `_` for `/`. Where the search would reach what
plans and checks a run, a stand-in of `carried` is written instead.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import code_hash, installed_packages
from plumbline.specs.code_hash import PACKAGE
from plumbline.specs.components import available, folder, load
from plumbline.specs.spec import ModelSpec

CARRIED = PACKAGE / "model" / "export" / "carried"

#: What a folder begins with: transformers looks for these two.
ROOTS = (CARRIED / "modeling_plumbline.py", CARRIED / "configuration_plumbline.py")

#: What is not carried, and what stands for it.
STAND_INS = {
    PACKAGE / "core" / "errors.py": CARRIED / "errors.py",
    PACKAGE / "specs" / "spec.py": CARRIED / "spec.py",
    PACKAGE / "specs" / "components.py": CARRIED / "registry.py",
    **dict.fromkeys((PACKAGE / "model" / "kernels").glob("[!_]*.py"), CARRIED / "kernel.py"),
    PACKAGE / "model" / "kernels" / "selection.py": CARRIED / "selection.py",
}

#: The table of a model's components, which is written for each.
CHOSEN = CARRIED / "chosen_components.py"

#: What every folder needs anyway.
EXPECTED = frozenset({"torch", "transformers"})


@dataclass(frozen=True, kw_only=True, slots=True)
class VendoredSources:
    """Sources that were collected for an exported folder.

    Attributes:
        files: file name -> text.
        requires: packages that they import in addition to torch and transformers.
        packages: top-level packages that they were taken from.
    """

    files: dict[str, str]
    requires: tuple[str, ...]
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Import:
    """An import of a carried module. `modules`: of names that are modules themselves, the file of each."""

    node: ast.ImportFrom | ast.Import
    file: Path | None
    modules: dict[str, Path]


def sources(spec: ModelSpec) -> VendoredSources:
    """Collect the sources that a model of `spec` runs, its components' files included.

    Raises:
        PlumblineError: a file imports in a way that cannot be carried; the message names it and the line.
    """
    components = {(slot, chosen["name"]): Path(available(slot)[chosen["name"]]) for slot, chosen in spec.slots.items()}
    imports, waiting = dict[Path, tuple[_Import, ...]](), [*ROOTS, *components.values()]
    while waiting:
        path = waiting.pop()
        if path in imports:
            continue
        imports[path] = () if path == CHOSEN else _imports(path)
        waiting += [
            file for entry in imports[path] for file in (entry.file, *entry.modules.values()) if file is not None
        ]
    names = _make_names(imports)
    brought = {
        code_hash.package_of(path): offer.distribution
        for (slot, name), path in components.items()
        if (offer := installed_packages.offers().by_entry.get(f"{folder(slot)}.{name}"))
    }
    files = {
        f"{names[path]}.py": _format_head(path, brought) + _rewrite_imports(path, imports[path], names)
        for path in imports
    }
    files[f"{CHOSEN.stem}.py"] = _write_component_table(components, names)
    files[ROOTS[0].name] += _all_by_name(names)
    # transformers tells two folders of one last name apart by the configuration's file alone, and takes its class for
    # that of the first model that had it.
    files[ROOTS[1].name] += f'\n#: Of everything here.\nSOURCES = "{sha256_text(canonical_json(files))}"\n'
    packages = {code_hash.package_of(path).name for path in imports}
    requires = {name for path in imports for name in _find_packages(path)} - EXPECTED - packages
    return VendoredSources(
        files=dict(sorted(files.items())), requires=tuple(sorted(requires)), packages=tuple(sorted(packages))
    )


@cache
def _imports(path: Path) -> tuple[_Import, ...]:
    """A file's imports of what could be carried; each file is read once a process."""
    return tuple(_find_imports(path))


def _find_imports(path: Path) -> Iterator[_Import]:
    package = code_hash.package_of(path)
    for node in ast.walk(code_hash.parse(path)):
        if isinstance(node, ast.Import):
            modules = {
                alias.name: _stand_in(file) for alias in node.names if (file := code_hash.file_of(alias.name, package))
            }
            if any("." in alias.name and alias.asname is None for alias in node.names if alias.name in modules):
                raise PlumblineError(
                    f"{path}:{node.lineno}: `{ast.unparse(node)}` cannot be carried into a folder; write it as "
                    "`from package import module`"
                )
            if modules:
                yield _Import(node, None, modules)
        elif isinstance(node, ast.ImportFrom) and (
            module := code_hash.resolve_import(node.level, node.module, path, package)
        ):
            modules = {
                alias.name: _stand_in(file)
                for alias in node.names
                if (file := code_hash.file_of(f"{module}.{alias.name}", package)) is not None
            }
            file = code_hash.file_of(module, package)
            if len(modules) == len(node.names):
                yield _Import(node, None, modules)
            elif file is not None:
                _require_names(path, node, file, modules)
                yield _Import(node, _stand_in(file), modules)


def _stand_in(file: Path) -> Path:
    return STAND_INS.get(file, file)


def _require_names(path: Path, node: ast.ImportFrom, file: Path, modules: dict[str, Path]) -> None:
    """Refuse a name that a stand-in does not have."""
    if file not in STAND_INS:
        return
    body = code_hash.parse(STAND_INS[file]).body
    names = {statement.name for statement in body if isinstance(statement, (ast.ClassDef, ast.FunctionDef))}
    names |= {
        name.id
        for statement in body
        if isinstance(statement, ast.Assign)
        for name in statement.targets
        if isinstance(name, ast.Name)
    }
    missing = [alias.name for alias in node.names if alias.name not in names and alias.name not in modules]
    if missing:
        raise PlumblineError(
            f"{path}:{node.lineno}: {missing[0]!r} of {file.relative_to(PACKAGE.parent)} cannot be exported with "
            f"a model (it can {', '.join(sorted(names))}); do not use it"
        )


def _make_names(imports: dict[Path, tuple[_Import, ...]]) -> dict[Path, str]:
    """The flat name of each module."""
    names: dict[Path, str] = {}
    for path in sorted(imports):
        package = code_hash.package_of(path)
        if path.parent == CARRIED:
            name = path.stem
        else:
            root = PACKAGE if package == PACKAGE else package.parent
            parts = path.relative_to(root).with_suffix("").parts
            name = "_".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name in names.values():
            first_path = next(other_path for other_path, other_name in names.items() if other_name == name)
            raise PlumblineError(f"{path} and {first_path} would both be {name}.py in a folder; rename one of them")
        names[path] = name
    return names


def _format_head(path: Path, brought: dict[Path, str]) -> str:
    """Make the comment that states where a file is from. Its own header, if it has one, stays below."""
    package = code_hash.package_of(path)
    if package == PACKAGE:
        origin, licence = _name_this_package(), "Apache-2.0"
    elif package in brought:
        origin, licence = f"{brought[package]} {version(brought[package])}", _licence(brought[package])
    else:  # beside a module that is in no package
        origin, licence = f"installed with {', '.join(brought.values())}", "not stated"
    place = path.relative_to(package.parent).as_posix()
    note = "Copied by `plumbline export`; its imports are relative here."
    return f"# {origin}, {place}, licence: {licence}.\n# {note}\n"


@cache
def _name_this_package() -> str:
    try:
        return f"plumbline-lm {version('plumbline-lm')}"
    except PackageNotFoundError:
        return "plumbline-lm, not installed"


def _licence(distribution: str) -> str:
    fields = metadata(distribution)
    return fields.get("License-Expression") or (fields.get("License") or "not stated").strip().partition("\n")[0]


def _rewrite_imports(path: Path, imports: tuple[_Import, ...], names: dict[Path, str]) -> str:
    """A file's text with its imports of carried modules made relative; all else stays as it is."""
    text = path.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for statement in sorted(imports, key=lambda statement: -statement.node.lineno):
        node = statement.node
        first, last = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1]
        new = ("\n" + " " * node.col_offset).join(_rewrite_import(statement, names))
        text = text[:first] + new.encode() + text[last + (node.end_col_offset or 0) :]
    return text.decode()


def _rewrite_import(statement: _Import, names: dict[Path, str]) -> list[str]:
    lines, aliases = [], []
    for alias in statement.node.names:
        if alias.name in statement.modules:
            lines.append(f"from . import {names[statement.modules[alias.name]]} as {alias.asname or alias.name}")
        else:
            aliases.append(alias.name + (f" as {alias.asname}" if alias.asname else ""))
    if aliases:
        begin = "" if statement.file is None else f"from .{names[statement.file]} "
        lines.append(f"{begin}import {', '.join(aliases)}")
    return lines


def _write_component_table(components: dict[tuple[str, str], Path], names: dict[Path, str]) -> str:
    """The table of the model's components."""
    lines = ['"""The components that this model chooses. Written by `plumbline export`."""', ""]
    for (slot, name), path in components.items():
        lines.append(f"from .{names[path]} import {load(slot, name).__name__} as {slot}")
    entries = "".join(f"    ({slot!r}, {name!r}): {slot},\n" for slot, name in components)
    return "\n".join([*lines, "", f"COMPONENTS = {{\n{entries}}}", ""])


def _all_by_name(names: dict[Path, str]) -> str:
    """The end of the file that transformers begins with: an import of every other one."""
    modules = sorted(set(names.values()) - {root.stem for root in ROOTS})
    why = "# transformers searches for the files that are needed by lines of this form, and of no other."
    return "\n".join(["", why, *(f"from .{name} import __name__ as _  # noqa: E402" for name in modules), ""])


@cache
def _find_packages(path: Path) -> frozenset[str]:
    """Packages that a file cannot do without, and that are neither carried nor Python's."""
    package, packages = code_hash.package_of(path), set[str]()
    optional = {
        id(inner) for node in ast.walk(code_hash.parse(path)) if isinstance(node, ast.Try) for inner in ast.walk(node)
    }
    for node in ast.walk(code_hash.parse(path)):
        if id(node) in optional:
            continue
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [node.module or ""]
        else:
            continue
        packages |= {module.partition(".")[0] for module in modules}
    return frozenset(packages - sys.stdlib_module_names - {package.name, PACKAGE.name})
