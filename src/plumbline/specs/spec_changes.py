"""Changes what is stated of a run: by an overlay of a study's YAML, or by words such as ``train.steps=100``, as
``plumbline train --set`` has them.
"""

from __future__ import annotations

from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.components import SLOTS
from plumbline.specs.spec import OptimizerSpec, RunSpec, ScheduleSpec
from plumbline.specs.yaml_files import parse_yaml

#: The parts of a run spec that an overlay may change.
PARTS = ("data_seed", "model", "optimizer", "schedule", "train", "data", "interventions", "probes")

#: What of a part stays when another component is named for it: its fields that are no component's options.
_SHARED = {"optimizer": OptimizerSpec, "schedule": ScheduleSpec}


def overlay(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with `change` on top: dictionaries merge, but another component drops the options of the old one."""
    merged = dict(base)
    for key, value in change.items():
        old_value = merged.get(key)
        if isinstance(value, dict) and isinstance(old_value, dict):
            is_renamed = value.get("name", old_value.get("name")) != old_value.get("name")
            if is_renamed and key in SLOTS:
                old_value = {}
            elif is_renamed and key in _SHARED:
                old_value = {
                    name: option for name, option in old_value.items() if name in _SHARED[key].__struct_fields__
                }
            merged[key] = overlay(old_value, value)
        else:
            merged[key] = value
    return merged


def change_spec(spec: RunSpec, changes: list[str]) -> RunSpec:
    """Change a run's spec by ``part.key=value`` words, checked as the study's YAML is.

    Another component takes its own defaults.

    Raises:
        PlumblineError: a word is not of that form, or asks for something that no study's YAML may contain.
    """
    content = {key: value for key, value in spec.to_dict().items() if key != "components"}
    for change in changes:
        path, equals, text = change.partition("=")
        names = path.split(".")
        if not equals or not all(names):
            raise PlumblineError(f"--set {change!r}: write it as part.key=value, such as train.steps=100")
        if names[0] not in PARTS:
            raise PlumblineError(
                f"--set {change!r}: there is no part {names[0]!r}{nearest(names[0], PARTS)} (there are {list(PARTS)})"
            )
        value = parse_yaml(text, f"--set {change!r}: the value")
        for name in reversed(names):
            value = {name: value}
        content = overlay(content, value)
    try:
        return RunSpec.from_dict(content)
    except PlumblineError as error:
        raise PlumblineError(f"--set: {error}") from error
