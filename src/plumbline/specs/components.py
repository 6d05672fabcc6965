"""What components exist and which options they take, read without importing them (and so without torch).

A component is one file, ``model/<folder>/<name>.py``, with one class decorated ``@component``. Its options are the
keyword-only arguments of ``__init__``: a literal default, and one of the annotations ``int``, ``float``, ``bool``,
``str`` or ``Literal[...]``. An installed package adds its own through the entry point group
``plumbline.components``, named ``<folder>.<name>`` and pointing at a module.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError

#: Slot in a model spec -> folder under ``plumbline/model`` that holds its components.
SLOTS = {
    "positions": "positions",
    "norm": "norms",
    "projections": "projections",
    "query_key": "query_key",
    "values": "values",
    "mixer": "mixers",
    "output": "output",
    "ffn": "ffn",
    "placement": "placement",
    "residual": "residual",
}

MODEL_DIRECTORY = Path(__file__).resolve().parent.parent / "model"
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,), "str": (str,)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One option of a component: its default and either its type's name or the values it may take."""

    default: Any
    kind: str
    choices: tuple[Any, ...] = ()

    def check(self, value: Any, where: str) -> Any:
        """Return `value` as it belongs into a spec.

        Raises:
            PlumblineError: `value` has another type or is none of the choices; `where` names the key.
        """
        if self.choices:
            # 1.0 and True equal 1, but would be other runs' identities.
            if not any(value == choice and type(value) is type(choice) for choice in self.choices):
                raise PlumblineError(f"{where}: {value!r} is none of {list(self.choices)}")
            return value
        fits = isinstance(value, _TYPES[self.kind]) and (self.kind == "bool" or not isinstance(value, bool))
        if not fits:
            raise PlumblineError(f"{where}: {value!r} is not {self.kind}")
        return float(value) if self.kind == "float" else value


@cache
def available(slot: str) -> dict[str, str]:
    """Component name -> path of the file that defines it, for one slot."""
    folder = SLOTS[slot]
    found = {
        path.stem: str(path)
        for path in sorted((MODEL_DIRECTORY / folder).glob("*.py"))
        if not path.stem.startswith("_")
    }
    for entry in entry_points(group="plumbline.components"):
        entry_folder, _, name = entry.name.partition(".")
        if entry_folder != folder:
            continue
        if name in found:
            raise PlumblineError(f"the installed component {entry.name!r} has the name of a built-in one; rename it")
        specification = importlib.util.find_spec(entry.module)
        if specification is None or specification.origin is None:
            raise PlumblineError(f"the component {entry.name!r} points at {entry.module}, which cannot be found")
        found[name] = specification.origin
    return found


@cache
def options(slot: str, name: str) -> dict[str, Option]:
    """The options of a component.

    Raises:
        PlumblineError: no such component, or its file does not keep to the form above.
    """
    files = available(slot)
    if name not in files:
        raise PlumblineError(_no_component(slot, name))
    tree = ast.parse(Path(files[name]).read_text(encoding="utf-8"), filename=files[name])
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and _decorated(node)]
    if len(classes) != 1:
        raise PlumblineError(f"{files[name]} must hold exactly one class decorated @component, not {len(classes)}")
    for node in classes[0].body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return _read_options(node, files[name])
    return {}


def complete(slot: str, given: dict[str, Any], where: str = "") -> dict[str, Any]:
    """A component's spec with every option in it: the given ones checked, the others at their defaults.

    Raises:
        PlumblineError: an unknown component, an unknown option or a value of the wrong type.
    """
    prefix = f"{where}model.{slot}"
    if "name" not in given:
        raise PlumblineError(f"{prefix}: 'name' is missing (one of {sorted(available(slot))})")
    if given["name"] not in available(slot):
        raise PlumblineError(f"{where}{_no_component(slot, given['name'])}")
    known = options(slot, given["name"])
    unknown = sorted(set(given) - set(known) - {"name"})
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise PlumblineError(
            f"{prefix}: the component {given['name']!r} has no option {unknown[0]!r}{hint} (it has {sorted(known)})"
        )
    values = {key: option.check(given.get(key, option.default), f"{prefix}.{key}") for key, option in known.items()}
    return {"name": given["name"], **values}


def _no_component(slot: str, name: str) -> str:
    close = difflib.get_close_matches(name, available(slot), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"model.{slot}.name: no component {name!r}{hint} (there are {sorted(available(slot))})"


def _decorated(node: ast.ClassDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "component" for mark in node.decorator_list)


def _read_options(function: ast.FunctionDef, path: str) -> dict[str, Option]:
    found = {}
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        where = f"{path}:{argument.lineno}: option {argument.arg!r}"
        if default is None or argument.annotation is None:
            raise PlumblineError(f"{where} needs an annotation and a default")
        try:
            value = ast.literal_eval(default)
        except ValueError as error:
            raise PlumblineError(f"{where}: its default must be a literal") from error
        found[argument.arg] = _option(argument.annotation, value, where)
    return found


def _option(annotation: ast.expr, default: Any, where: str) -> Option:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        choices = ast.literal_eval(annotation.slice)
        return Option(default=default, kind="literal", choices=choices if isinstance(choices, tuple) else (choices,))
    kind = ast.unparse(annotation)
    if kind not in _TYPES:
        raise PlumblineError(f"{where}: annotate it with int, float, bool, str or Literal[...], not {kind}")
    return Option(default=default, kind=kind)
