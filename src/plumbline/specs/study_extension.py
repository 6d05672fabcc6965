"""Completes the YAML of a study that extends another one with everything that it does not contain itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.specs import sweep
from plumbline.specs.yaml_files import load_study


def complete_study(definition: dict[str, Any], path: str, root: Path) -> dict[str, Any]:
    """Complete a study's YAML (`definition`) from the study that it extends; one that extends none is given back as it
    is.

    A suite of its own is what all of these runs are scored on, those of the other study in addition to its own.
    The comparison is then the reference and the study's own methods. Groups of runs of `all` methods hold these and all
    references of the noise floor, other groups the references among what they name (none if they name `variants`). A
    target is inherited if each of its groups still has a run.

    Raises:
        PlumblineError: the study states what it can only take from the other one, or that one cannot be extended.
    """
    if "extends" not in definition:
        return definition | {"comparison": list(definition["methods"]), "inherited": []}
    for key in ("corpus", "recipe", "scales", "arms", "noise_floor", "measurements"):
        if key in definition:
            raise PlumblineError(f"{path}: {key}: a study that extends another one takes it from there; remove the key")
    parent = load_study(definition["extends"], root)
    if "extends" in parent:
        raise PlumblineError(
            f"{path}: extends: {definition['extends']!r} extends a study itself; name {parent['extends']!r}"
        )
    if "noise_floor" not in parent:
        raise PlumblineError(
            f"{path}: extends: {definition['extends']!r} has no noise_floor, so nothing to compare with"
        )
    clashes = sorted(set(definition["methods"]) & (set(parent["methods"]) | set(parent.get("arms", {}))))
    if clashes:
        raise PlumblineError(
            f"{path}: methods: {clashes[0]!r} is a method of {definition['extends']!r}; choose another name"
        )
    floor = parent["noise_floor"]
    references = [floor["reference"], *floor["others"]]
    runs: dict[str, list[dict[str, Any]]] = {}
    for group, entries in parent["runs"].items():
        kept_entries: list[dict[str, Any]] = []
        for entry in entries:
            if entry["methods"] == "all":
                kept_entries.append(entry | {"methods": references})
                kept_entries.append(
                    entry | {"methods": list(definition["methods"]), "seeds": definition.get("seeds", entry["seeds"])}
                )
            elif entry["methods"] != "variants":
                methods = [method for method in sweep.list_named_runs(parent, entry, path) if method in references]
                kept_entries += [entry | {"methods": methods}] if methods else []
        if kept_entries:
            runs[group] = kept_entries
    runs |= definition.get("runs", {})
    targets = {
        name: entry for name, entry in parent["targets"].items() if all(group in runs for group in entry["runs"])
    }
    used_groups = {group for entry in targets.values() for group in entry["runs"]} | set(definition.get("runs", {}))
    return {
        **parent,
        **definition,
        "methods": parent["methods"] | definition["methods"],
        "arms": {},
        "runs": {group: entries for group, entries in runs.items() if group in used_groups},
        "targets": targets | definition.get("targets", {}),
        "interpretations": [*parent["interpretations"], *definition.get("interpretations", [])],
        "comparison": [floor["reference"], *definition["methods"]],
        "inherited": list(parent["methods"]),
        "extended_suite": parent.get("suite", ""),
    }
