"""Looks up the names that a study's YAML uses, and refuses those that it does not define."""

from __future__ import annotations

from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import measurement, sweep


def check_names(definition: dict[str, Any], path: str, preset: str) -> None:
    """Refuse groups, methods and scores that are named and not there.

    Raises:
        PlumblineError: naming the key and those that there are.
    """
    for target, entry in definition["targets"].items():
        for group in entry["runs"]:
            if group not in definition["runs"]:
                raise PlumblineError(
                    f"{path}: targets.{target}.runs: there is no group of runs {group!r}"
                    f"{nearest(group, definition['runs'])} (there are {sorted(definition['runs'])})"
                )
        if "scores" in entry["reads"] and "suite" not in definition:
            raise PlumblineError(f"{path}: targets.{target}.reads: scores, but the study has no `suite`; name one")
        if "examples" in entry["reads"] and "scores" not in entry["reads"]:
            raise PlumblineError(f"{path}: targets.{target}.reads: examples need scores; add `scores`")
    measurement.check(definition, path, preset)
    for name, entry in definition["methods"].items():
        sweep.check(name, entry, path)
    floor = definition.get("noise_floor")
    for method in [] if floor is None else [floor["reference"], *floor["others"]]:
        where = f"{path}: noise_floor"
        sweep.require_point(method, definition["methods"], where)
        name, _, point = method.partition(".")
        entry = definition["methods"].get(name, {})
        if "sweep" in entry and point not in entry.get("variants", {}):
            sweep.find_point(name, entry, method, where)
        else:
            find_entry(definition, method, path, "noise_floor")
    shared_names = sorted(set(definition["methods"]) & set(definition.get("arms", {})))
    if shared_names:
        raise PlumblineError(f"{path}: arms: {shared_names[0]!r} is also the name of a method; rename the arm")
    arms = definition.get("arms", {})
    for arm in arms:
        chain = [arm]
        while chain[-1] in arms and chain[-1] not in chain[:-1]:
            chain.append(arms[chain[-1]]["variant_of"].partition(".")[0])
        where = f"arms.{arm}.variant_of"
        if chain[-1] in arms:
            raise PlumblineError(f"{path}: {where}: {' of '.join(chain)}, and so of itself; name a method")
        find_entry(definition, chain[-1], path, where)


def find_entry(definition: dict[str, Any], name: str, path: str, key: str = "runs") -> dict[str, Any]:
    """Find a method in the YAML at `path`.

    Raises:
        PlumblineError: there is none.
    """
    if name in definition["methods"]:
        return definition["methods"][name]
    methods = [*definition["methods"], *definition.get("arms", {})]
    raise PlumblineError(
        f"{path}: {key}: there is no method or arm {name!r}{nearest(name, methods)} (there are {methods})"
    )


def is_wanted(definition: dict[str, Any], method: str, preset: str, where: str) -> bool:
    """Whether a method, variant or arm is one that `preset` has.

    Raises:
        PlumblineError: there is no such method.
    """
    name, _, variant = method.partition(".")
    arm = definition.get("arms", {}).get(name)
    entry = find_entry(definition, name, where) if arm is None else arm
    entries = [entry, entry.get("variants", {}).get(variant, {})]
    return all(preset in each.get("presets", [preset]) for each in entries)


def list_requested_groups(definition: dict[str, Any]) -> set[str]:
    """List the groups of runs that only targets on request read."""
    groups: dict[bool, set[str]] = {False: set(), True: set()}
    for entry in definition["targets"].values():
        groups[bool(entry.get("on_request"))].update(entry["runs"])
    return groups[True] - groups[False]
