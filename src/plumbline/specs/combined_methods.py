"""Combines methods of a study in one run: in each slot the run has what one of the methods has there.

A slot is what a spec chooses components for: the slots of a model, the optimizer, the schedule and the interventions.
Methods are compared by their whole specs at one scale, so that it does not matter how a study's YAML states a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.components import SLOTS
from plumbline.specs.spec import RunSpec

#: Parts of a spec beside its model for which components are chosen.
_PARTS = ("optimizer", "schedule", "interventions")
#: What two specs of one scale and seed may differ in without a difference in what is trained.
_NAMES = ("study", "method", "suite", "probes", "components")


def list_choices(spec: RunSpec) -> dict[str, Any]:
    """Slot -> what a spec chooses there, with every option."""
    content = spec.to_dict()
    return {slot: content["model"][slot] for slot in SLOTS} | {part: content[part] for part in _PARTS}


def find_changed_slots(spec: RunSpec, baseline: RunSpec) -> list[str]:
    """List the slots in which a spec differs from the baseline's."""
    theirs = list_choices(baseline)
    return [slot for slot, choice in list_choices(spec).items() if choice != theirs[slot]]


def find_other_changes(spec: RunSpec, baseline: RunSpec) -> list[str]:
    """List the keys outside all slots in which a spec differs from the baseline's: sizes, budget, data."""
    ours, theirs = (_list_others(each) for each in (spec, baseline))
    return [key for key in ours if ours[key] != theirs.get(key)]


def find_levels(specs: Mapping[str, RunSpec], baseline: str) -> dict[str, tuple[str, ...]]:
    """Slot -> the methods that bring a choice of their own for it; the baseline is the first of each.

    Of methods with one and the same choice for a slot the one that changes the fewest slots stands for it, of several
    the first. A slot that no method changes is left out.

    Args:
        specs: method -> its spec, all at one scale and with one seed; `baseline` is among them.
    """
    changes = {name: find_changed_slots(spec, specs[baseline]) for name, spec in specs.items()}
    levels: dict[str, list[str]] = {}
    for name in sorted(specs, key=lambda name: len(changes[name])):  # stable: equals stay in their order
        for slot in changes[name]:
            methods = levels.setdefault(slot, [baseline])
            if all(list_choices(specs[method])[slot] != list_choices(specs[name])[slot] for method in methods):
                methods.append(name)
    order, slots = list(specs), [slot for slot in list_choices(specs[baseline]) if slot in levels]
    return {slot: (baseline, *sorted(levels[slot][1:], key=order.index)) for slot in slots}


def name_level(slot: str, method: str, spec: RunSpec, baseline: RunSpec) -> str:
    """Name what a method brings to a slot: the method where that is all it changes, else also the slot."""
    return method if find_changed_slots(spec, baseline) == [slot] else f"{method}.{slot}"


def describe_choice(choice: Any, baseline: Any) -> str:
    """Describe a choice for a slot by its component, with the options in which it differs from the baseline's of the
    same component; of interventions those that the baseline has not.
    """
    if isinstance(choice, list):
        return " and ".join(each["name"] for each in choice if each not in baseline) or "as the baseline"
    differences = [f"{key} {value}" for key, value in choice.items() if baseline.get(key, value) != value]
    same_name = choice["name"] == baseline.get("name")
    return f"{choice['name']} ({', '.join(differences)})" if same_name and differences else str(choice["name"])


def combine(baseline: RunSpec, choices: Mapping[str, RunSpec]) -> RunSpec:
    """Make the spec that has in each slot of `choices` what that spec has there, and else what the baseline has.

    It is named after its levels, in the order of the slots, and is read by no probe.

    Raises:
        PlumblineError: there is no such slot, or no such run.
    """
    slots = list(list_choices(baseline))
    if unknown := [slot for slot in choices if slot not in slots]:
        raise PlumblineError(f"there is no slot {unknown[0]!r}{nearest(unknown[0], slots)} (there are {slots})")
    content = {key: value for key, value in baseline.to_dict().items() if key not in ("components", "probes")}
    parts = []
    for slot in sorted(choices, key=slots.index):
        (content["model"] if slot in SLOTS else content)[slot] = list_choices(choices[slot])[slot]
        parts.append(name_level(slot, choices[slot].method, choices[slot], baseline))
    # What a study that extends another one brings is its own.
    study = next((spec.study for spec in choices.values() if spec.study != baseline.study), baseline.study)
    return RunSpec.from_dict(content | {"study": study, "method": "+".join(parts)})


def find_method(spec: RunSpec, specs: Mapping[str, RunSpec]) -> str | None:
    """Find the method that trains what a spec of its scale trains, so that its runs are used; None if there is none."""
    content = _list_trained(spec)
    return next((name for name, other in specs.items() if _list_trained(other) == content), None)


def _list_trained(spec: RunSpec) -> dict[str, Any]:
    """Everything of a spec that is trained by, except for its seed."""
    return {key: value for key, value in spec.to_dict().items() if key not in (*_NAMES, "init_seed")}


def _list_others(spec: RunSpec) -> dict[str, Any]:
    """Everything of a spec that is trained by and is in no slot, by its key."""
    content = _list_trained(spec)
    model = {f"model.{key}": value for key, value in content.pop("model").items() if key not in SLOTS}
    nested = {f"{part}.{key}": value for part in ("train", "data") for key, value in content.pop(part).items()}
    return model | nested | {key: value for key, value in content.items() if key not in _PARTS}
