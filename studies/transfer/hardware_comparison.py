"""Compares the two runs of Table 5: which devices their manifests name, and whether they say anything about hardware.

Source: transfer study, appendix D. They do where they were made on different devices and by the same spec. Without the
profile of the second device the second run is a repeat on the first; with another precision it is a stand-in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from plumbline.core.run_files import MISSING
from plumbline.results.interpretations import describe_arm
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

ARM = "second_hardware"

DIFFERENT, SAME, UNKNOWN, STAND_IN = "different devices", "same device", "device not known", "stand-in"


@dataclass(frozen=True, kw_only=True, slots=True)
class HardwareComparison:
    """What two runs are to each other: one of the words above, or `MISSING`; and why, as a sentence without its end."""

    word: str
    why: str

    @property
    def evidence(self) -> bool:
        """Whether their difference is one between devices."""
        return self.word == DIFFERENT


def compare_hardware(frames: RunFrames, study: Study, first: str | None, second: str | None) -> HardwareComparison:
    """Two runs by their keys; None for a run that the study has not."""
    if first is None or second is None or not {first, second} <= set(frames.manifests):
        return HardwareComparison(word=MISSING, why="one of the two runs is missing")
    first_devices, second_devices = (_devices(frames.manifests[key]) for key in (first, second))
    same = [_is_same_device(*both) for both in product(first_devices, second_devices)]
    if True in same:
        on = " and ".join(dict.fromkeys((_spell(first_devices), _spell(second_devices))))
        return HardwareComparison(word=SAME, why=f"{first} and {second} were made on the same device ({on})")
    if None in same:
        return HardwareComparison(word=UNKNOWN, why=f"the manifests of {first} and {second} do not name both devices")
    change = stand_in(study)
    if change:
        return HardwareComparison(word=STAND_IN, why=f"{second} is a stand-in, which differs from {first} by {change}")
    return HardwareComparison(word=DIFFERENT, why=f"{_spell(first_devices)} and {_spell(second_devices)}")


def describe_device(manifest: Mapping[str, Any]) -> str:
    """What a run was made on, in words."""
    return _spell(_devices(manifest))


def stand_in(study: Study) -> str:
    """What the arm changes under this preset; empty if its spec is the baseline's own."""
    return describe_arm(study, ARM)


#: Kind (cuda, cpu) and name; None for what is not recorded.
_Device = tuple[str | None, str | None]


def _devices(manifest: Mapping[str, Any]) -> list[_Device]:
    """The device of a run; several where it went on elsewhere; a start that another went back behind left nothing."""
    devices: list[_Device] = []
    after = math.inf
    for start in reversed(manifest.get("starts") or [{"step": 0}]):
        if start["step"] < after:
            facts = {**manifest, **start}
            devices.append((facts.get("device") or None, facts.get("device_name") or None))
            after = start["step"]
    return list(dict.fromkeys(reversed(devices)))


def _is_same_device(first: _Device, second: _Device) -> bool | None:
    """Whether two devices are one by kind and name; None if that is not known. A host's name says nothing."""
    (kind, name), (other_kind, other_name) = first, second
    if kind is None or other_kind is None:
        return None
    if kind != other_kind:
        return False
    if name is not None and other_name is not None:
        return name == other_name
    return True if kind == "cpu" else None


def _spell(devices: list[_Device]) -> str:
    return " then ".join(_word(*each) for each in devices)


def _word(kind: str | None, name: str | None) -> str:
    if kind is None:
        return "a device that is not recorded"
    if name is None:
        return f"{kind} without a name"
    return f"{kind} {name}" if kind == "cpu" else name
