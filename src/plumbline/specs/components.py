"""Finds what is chosen by name, and checks its options: model slots, optimizers, schedules, interventions, probes.

A component is one file, ``<folder>/<name>.py``, with one class or function marked ``@component``. Its options are the
keyword-only arguments of its ``__init__`` (or of the function): a literal default, and one of the annotations ``int``,
``float``, ``bool``, ``str`` or ``Literal[...]``. An ``__init__`` that also takes ``**others`` has those of its base
class besides, whose defaults its own replace. An installed package adds its own through the entry point group
``plumbline.components``, named ``<folder>.<name>`` (as ``mixers.tempered``) and pointing at a module.

Names, options and values are read from the source, so that a mistake is reported when the workflow is planned, without
importing a component (and so without torch) or anything of its package (`plumbline.specs.installed_packages`); `load`
imports one when it is used.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import code_hash, installed_packages

#: Kind -> folder under ``plumbline`` that holds its components. The folder's own name is that of the entry points.
KINDS = {
    "positions": "model/positions",
    "norm": "model/norms",
    "projections": "model/projections",
    "query_key": "model/query_key",
    "values": "model/values",
    "mixer": "model/mixers",
    "output": "model/output",
    "ffn": "model/ffn",
    "placement": "model/placement",
    "residual": "model/residual",
    "optimizer": "train/optimizers",
    "schedule": "train/schedules",
    "intervention": "train/interventions",
    "probe": "evaluate/probes",
}

#: The kinds that are slots of a model.
SLOTS = tuple(kind for kind, folder in KINDS.items() if folder.startswith("model/"))

PACKAGE = code_hash.PACKAGE
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,), "str": (str,)}
Marked = TypeVar("Marked", bound=Any)


def component(definition: Marked) -> Marked:
    """Mark the one class or function that a component's file defines; to be used as a decorator."""
    definition.__component__ = True
    return definition


@dataclass(frozen=True, kw_only=True, slots=True)
class ComponentOption:
    """One option of a component: its default and either its type's name or the values it may take."""

    default: Any
    kind: str
    choices: tuple[Any, ...] = ()

    def check(self, value: Any, where: str) -> Any:
        """Return `value` as a spec stores it: an int becomes a float where the option is one.

        Raises:
            PlumblineError: `value` has another type or is none of the choices; `where` names the key.
        """
        if self.choices:
            # 1.0 and True equal 1, but would be other runs' identities.
            if not any(value == choice and type(value) is type(choice) for choice in self.choices):
                hint = nearest(str(value), [str(choice) for choice in self.choices])
                raise PlumblineError(f"{where}: {value!r} is none of {list(self.choices)}{hint}")
            return value
        fits = isinstance(value, _TYPES[self.kind]) and (self.kind == "bool" or not isinstance(value, bool))
        if not fits:
            raise PlumblineError(f"{where}: {value!r} is not {self.kind}")
        return float(value) if self.kind == "float" else value


@cache
def folder(kind: str) -> str:
    """The name of the folder that holds components of a kind, without the folders above it.

    It is also the first part of the name of an installed component's entry point.
    """
    return Path(KINDS[kind]).name


@cache
def available(kind: str) -> dict[str, str]:
    """Component name -> path of the file that defines it, for one kind.

    An installed component that cannot be found, or that two distributions bring, is left out: choosing it is an error
    that states it. One with the name of a built-in component is left out too, and nobody can choose that name.
    """
    first = folder(kind) + "."
    offers = installed_packages.offers().by_entry.values()
    usable = [offer for offer in offers if offer.entry.startswith(first) and not offer.fault]
    files = (path for path in sorted((PACKAGE / KINDS[kind]).glob("*.py")) if not path.stem.startswith("_"))
    return {offer.entry.removeprefix(first): str(offer.path) for offer in usable} | {
        path.stem: str(path) for path in files
    }


@cache
def options(kind: str, name: str) -> dict[str, ComponentOption]:
    """The options of a component, by name.

    Raises:
        PlumblineError: there is no such component, its file does not keep to the form that this module describes, or
            (of an installed one) it cannot be found or has a name that is taken.
    """
    path, offer = _find_file(kind, name, f"{kind}.name"), _find_offer(kind, name)
    try:
        return _options(path)
    except PlumblineError as error:
        raise PlumblineError(f"{error} ({offer})" if offer else str(error)) from None


def _options(path: str) -> dict[str, ComponentOption]:
    definitions = [
        node
        for node in code_hash.parse(Path(path)).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and _is_component(node)
    ]
    if len(definitions) != 1:
        raise PlumblineError(
            f"{path} must hold exactly one class or function marked @component, not {len(definitions)}"
        )
    if isinstance(definitions[0], ast.FunctionDef):
        return _read_options(definitions[0], path)
    return _options_of_class(definitions[0], Path(path))


def _options_of_class(definition: ast.ClassDef, path: Path) -> dict[str, ComponentOption]:
    """The options of a class's ``__init__``, and of its base class's where it passes others on to that."""
    for node in definition.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            own_options = _read_options(node, str(path))
            if node.args.kwarg is None:
                return own_options
            where = f"{path}:{node.lineno}: **{node.args.kwarg.arg}"
            return own_options | {
                name: option
                for name, option in _read_inherited(definition, path, where).items()
                if name not in own_options
            }
    return {}


def _read_inherited(subclass: ast.ClassDef, path: Path, where: str) -> dict[str, ComponentOption]:
    """The options of the first base class, which is imported from a file that can be read."""
    base = ast.unparse(subclass.bases[0]) if subclass.bases else ""
    package = code_hash.package_of(path)
    for node in code_hash.parse(path).body:
        if isinstance(node, ast.ImportFrom) and base in (alias.name for alias in node.names):
            file = code_hash.file_of(code_hash.resolve_import(node.level, node.module, path, package), package)
            if file is not None:
                for definition in code_hash.parse(file).body:
                    if isinstance(definition, ast.ClassDef) and definition.name == base:
                        return _options_of_class(definition, file)
    raise PlumblineError(f"{where} needs a base class that is imported by its name, whose options these are")


def complete(kind: str, entry: Any, key: str, spec_keys: Collection[str] = ()) -> dict[str, Any]:
    """A component's choice with every option in it: the given ones checked, the others at their defaults.

    Args:
        entry: ``{"name": ..., option: value}``.
        key: the spec's key that it stands under, such as ``model.mixer``; errors begin with it.
        spec_keys: keys of the spec itself that stand next to the options; they are left out.

    Raises:
        PlumblineError: an unknown component, an unknown option or a value of the wrong type.
    """
    if not isinstance(entry, dict) or "name" not in entry:
        names = sorted(available(kind))
        guess = nearest("name", map(str, entry)).replace("did you mean", "is it") if isinstance(entry, dict) else ""
        raise PlumblineError(f"{key}: 'name' is missing{guess or nearest(str(entry), names)} (one of {names})")
    _find_file(kind, entry["name"], f"{key}.name")
    choices = options(kind, entry["name"])
    unknown = sorted(set(entry) - set(choices) - set(spec_keys) - {"name"})
    if unknown:
        hint = nearest(unknown[0], [*choices, *spec_keys])
        addition = f", besides {sorted(spec_keys)}" if spec_keys else ""
        raise PlumblineError(
            f"{key}: the component {entry['name']!r} has no option {unknown[0]!r}{hint} "
            f"(it has {sorted(choices)}{addition})"
        )
    values = {name: option.check(entry.get(name, option.default), f"{key}.{name}") for name, option in choices.items()}
    return {"name": entry["name"], **values}


def load(kind: str, name: str) -> Any:
    """Import a component and return the class or function behind its name.

    Raises:
        PlumblineError: there is no such component, or an installed one cannot be imported.
    """
    path, offer = _find_file(kind, name, f"{kind}.name"), _find_offer(kind, name)
    if offer is not None:
        module = installed_packages.load(offer)
    else:
        module = importlib.import_module(f"{PACKAGE.name}.{KINDS[kind].replace('/', '.')}.{name}")
    components = [value for value in vars(module).values() if _is_marked_in(value, module.__name__)]
    assert len(components) == 1, f"{path}: one @component expected"
    return components[0]


@cache
def code_class(kind: str, name: str) -> str:
    """The class of a component's code: its part of a run's identity (see `plumbline.specs.code_hash`)."""
    return code_hash.component_class(f"{folder(kind)}.{name}", Path(_find_file(kind, name, f"{kind}.name")))


def _find_file(kind: str, name: Any, key: str) -> str:
    files, offer = available(kind), _find_offer(kind, name)
    if offer is not None and offer.fault:
        raise PlumblineError(f"{key}: {offer.fault}")
    if name not in files:
        unknown = "".join(f"; {problem}" for problem in installed_packages.offers().unknown)
        hint = nearest(str(name), files)
        raise PlumblineError(
            f"{key}: no component {name!r}{hint} (there are {sorted(files)}){unknown}; components of a "
            "package need it to be installed (pip install; entry point group plumbline.components)"
        )
    if offer is not None and Path(files[name]) != offer.path:
        raise PlumblineError(
            f"{key}: {offer} has the name of a built-in component; rename it, or uninstall {offer.distribution}"
        )
    return files[name]


def _find_offer(kind: str, name: Any) -> installed_packages.InstalledEntry | None:
    """What an installed distribution offers under a name."""
    return installed_packages.offers().by_entry.get(f"{folder(kind)}.{name}")


def _is_marked_in(value: Any, module_name: str) -> bool:
    """Whether `value` is what was marked in this very module, not imported into it."""
    is_own = getattr(value, "__module__", None) == module_name and hasattr(value, "__dict__")
    return is_own and "__component__" in vars(value)


def _is_component(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "component" for mark in node.decorator_list)


def _read_options(function: ast.FunctionDef, path: str) -> dict[str, ComponentOption]:
    by_name = {}
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        where = f"{path}:{argument.lineno}: option {argument.arg!r}"
        if default is None or argument.annotation is None:
            raise PlumblineError(f"{where} needs an annotation and a default")
        try:
            value = ast.literal_eval(default)
        except ValueError as error:
            raise PlumblineError(f"{where}: its default must be a literal") from error
        by_name[argument.arg] = _read_option(argument.annotation, value, where)
    return by_name


def _read_option(annotation: ast.expr, default: Any, where: str) -> ComponentOption:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        choices = ast.literal_eval(annotation.slice)
        return ComponentOption(
            default=default, kind="literal", choices=choices if isinstance(choices, tuple) else (choices,)
        )
    kind = ast.unparse(annotation)
    if kind not in _TYPES:
        raise PlumblineError(f"{where}: annotate it with int, float, bool, str or Literal[...], not {kind}")
    return ComponentOption(default=default, kind=kind)
