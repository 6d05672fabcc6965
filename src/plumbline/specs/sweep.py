"""Expands swept methods, which run at every point of a grid and never without one: each point's name, and what it sets.

Axis by axis a sweep states what it ``sets``, as a path into the merged YAML, and to which ``values``::

    sweep:
      eta: {sets: optimizer.learning_rate, values: [3.0e-4, 3.0e-3]}
      tau: {sets: interventions.quack.tau, values: [0.1, 1]}

The point of a method is named like a variant: ``quack.eta_0.003-tau_0.1``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.structs import convert
from plumbline.specs.components import SLOTS, available, options
from plumbline.specs.spec import ModelSpec, OptimizerSpec, ScheduleSpec, TrainSpec

#: Parts of a spec whose numbers a sweep can set, next to options of components.
_FIELDS: dict[str, Any] = {"model": ModelSpec, "optimizer": OptimizerSpec, "schedule": ScheduleSpec, "train": TrainSpec}

#: Axis -> value.
Point = dict[str, float]

#: Refuses a value for a key, by raising an error that begins with the key.
_Check = Callable[[Any, str], Any]


def points(name: str, entry: dict[str, Any]) -> dict[str, Point]:
    """Every point of a method's grid under its full name, the first axis slowest; empty for a method without sweep."""
    axes = entry.get("sweep", {})
    grid = [dict(zip(axes, values, strict=True)) for values in product(*(axis["values"] for axis in axes.values()))]
    return {f"{name}.{_spell_point(point)}": point for point in grid if point}


def list_named_runs(definition: dict[str, Any], entry: dict[str, Any], where: str) -> list[str]:
    """The methods, variants, sweep points and arms that an entry of `runs` names; a swept method becomes all of its
    points.

    `all` stands for the methods of the comparison, `variants` for every variant of one of them or of an arm.

    Raises:
        PlumblineError: a point is named next to its method.
    """
    methods = entry["methods"]
    if methods == "all":
        methods = definition["comparison"]
    elif methods == "variants":
        methods = variants(definition)
    runs = [run for name in methods for run in points(name, definition["methods"].get(name, {})) or [name]]
    duplicates = [name for name, count in Counter(runs).items() if count > 1]
    if duplicates:
        raise PlumblineError(
            f"{where}: {duplicates[0]!r} is there twice; its method includes all of its points, so remove one of them"
        )
    return runs


def variants(definition: dict[str, Any]) -> list[str]:
    """The variants of the comparison's methods and of arms, as ``<method>.<variant>``, in the YAML's order."""
    methods = dict.fromkeys(name.partition(".")[0] for name in definition["comparison"])
    entries = {name: definition["methods"][name] for name in methods} | definition.get("arms", {})
    return [f"{name}.{variant}" for name, entry in entries.items() for variant in entry.get("variants", {})]


def label(point: Point) -> str:
    """A sweep point as text for tables and figures: ``eta 0.003, tau 0.1``."""
    return ", ".join(f"{axis.replace('_', ' ')} {value:g}" for axis, value in point.items())


def find_point(name: str, entry: dict[str, Any], full_name: str, where: str) -> Point:
    """The values of the sweep point that `full_name` names in full.

    Raises:
        PlumblineError: the grid has no such point.
    """
    by_name = points(name, entry)
    if full_name in by_name:
        return by_name[full_name]
    names = [*by_name, *(f"{name}.{variant}" for variant in entry.get("variants", {}))]
    raise PlumblineError(f"{where}: no point or variant {full_name!r}{nearest(full_name, names)} (there are {names})")


def require_point(method: str, methods: dict[str, dict[str, Any]], where: str) -> None:
    """Refuse the name of a swept method where one run is meant, which needs the name of a point.

    Raises:
        PlumblineError: naming a point.
    """
    by_name = points(method, methods.get(method, {}))
    if by_name:
        raise PlumblineError(
            f"{where}: {method!r} is swept and has no run of its own; name one of its points, such as "
            f"{next(iter(by_name))!r}, or a variant"
        )


def check(name: str, entry: dict[str, Any], path: str) -> None:
    """Check what can be checked of a method's sweep without its recipe.

    Raises:
        PlumblineError: two values share a name, two axes set the same key, or a point has the name of a variant.
    """
    where, axes = f"{path}: methods.{name}.sweep", entry.get("sweep", {})
    for axis, grid in axes.items():
        duplicates = [spelt for spelt, count in Counter(f"{value:g}" for value in grid["values"]).items() if count > 1]
        if duplicates:
            raise PlumblineError(
                f"{where}.{axis}.values: two values are {duplicates[0]} when rounded to six digits, which name a "
                "point; keep one of them"
            )
    targets = Counter(grid["sets"] for grid in axes.values())
    if targets and max(targets.values()) > 1:
        raise PlumblineError(f"{where}: two axes set {targets.most_common(1)[0][0]}; keep one of them")
    clashes = [variant for variant in entry.get("variants", {}) if f"{name}.{variant}" in points(name, entry)]
    if clashes:
        raise PlumblineError(f"{path}: methods.{name}.variants: {clashes[0]!r} is also a point of the sweep; rename it")


def change(merged: dict[str, Any], entry: dict[str, Any], point: Point, where: str) -> dict[str, Any]:
    """What a sweep point changes, as an overlay on the merged recipe, scale and method.

    Raises:
        PlumblineError: the key that an axis sets does not exist, or does not accept the value.
    """
    overlay: dict[str, Any] = {}
    settable = _list_settable(merged)
    for axis, value in point.items():
        target = entry["sweep"][axis]["sets"]
        if target not in settable:
            raise PlumblineError(
                f"{where}.{axis}.sets: there is no {target!r} to set{nearest(target, settable)} (a sweep sets a number "
                "of model, optimizer, schedule or train, or interventions.NAME.option of an intervention that the "
                "method has)"
            )
        settable[target](value, f"{where}.{axis}.values")
        part, *rest, last = target.split(".")
        if part == "interventions":
            interventions = overlay.get(part, merged[part])
            if sum(each["name"] == rest[0] for each in interventions) > 1:
                raise PlumblineError(f"{where}.{axis}.sets: the method has two interventions {rest[0]!r}; keep one")
            overlay[part] = [each | {last: value} if each["name"] == rest[0] else each for each in interventions]
        else:
            place = overlay.setdefault(part, {})
            for key in rest:
                place = place.setdefault(key, {})
            place[last] = value
    return overlay


def _spell_point(point: Point) -> str:
    return "-".join(f"{axis}_{value:g}" for axis, value in point.items())


def _list_settable(merged: dict[str, Any]) -> dict[str, _Check]:
    """Every path that a sweep may set, with what refuses values: fields of the spec, options of what is chosen."""
    checks: dict[str, _Check] = {}
    for part, kind in _FIELDS.items():
        for field in msgspec.structs.fields(kind):
            if field.name not in ("name", "options", "slots"):
                checks[f"{part}.{field.name}"] = partial(convert, field.type)
    choices = [(slot, f"model.{slot}", merged.get("model", {}).get(slot, {})) for slot in SLOTS]
    choices += [(part, part, merged.get(part, {})) for part in ("optimizer", "schedule")]
    choices += [("intervention", f"interventions.{each['name']}", each) for each in merged.get("interventions", ())]
    for choice_kind, key, choice in choices:
        if choice.get("name") in available(choice_kind):  # what is not there is reported when the spec is made
            checks |= {f"{key}.{name}": option.check for name, option in options(choice_kind, choice["name"]).items()}
    return checks
