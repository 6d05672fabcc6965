"""Reads what a study measures in addition to its runs, for targets that need it: side experiments, step times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.formats import parse_duration

#: How long a measurement is taken to need where its options do not say.
DURATION = "30 min"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """An entry of ``measurements`` in a study's YAML, under one preset.

    Attributes:
        study: the study whose code measures.
        options: arguments of the function that measures.
        seconds: an estimate of how long it takes.
        runs: the groups of runs whose specs (not results) the function reads.
    """

    study: str
    name: str
    options: dict[str, Any]
    seconds: float = parse_duration(DURATION)
    device: Literal["cpu", "gpu"] = "cpu"
    runs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The measurement's name where tables name runs: ``measured/study/name``."""
        return f"measured/{self.study}/{self.name}"


def measurements(definition: dict[str, Any], study: str, preset: str) -> dict[str, Measurement]:
    """The measurements of a study that have options under `preset`, by name."""
    by_name = {}
    for name, entry in definition.get("measurements", {}).items():
        if preset in entry:
            options = dict(entry[preset])
            seconds = parse_duration(options.pop("duration", DURATION))
            settings = {"seconds": seconds, "device": entry.get("device", "cpu"), "runs": tuple(entry.get("runs", ()))}
            by_name[name] = Measurement(study=study, name=name, options=options, **settings)
    return by_name


def check(definition: dict[str, Any], path: str, preset: str) -> None:
    """Check that the measurements which targets name have options under `preset`, and that groups which they read
    exist.

    Raises:
        PlumblineError: a measurement or group is missing; the message names the key of the study's YAML.
    """
    entries = definition.get("measurements", {})
    for target, entry in definition["targets"].items():
        for name in entry.get("measurements", ()):
            if name not in entries:
                raise PlumblineError(
                    f"{path}: targets.{target}.measurements: there is no measurement {name!r}{nearest(name, entries)} "
                    f"(there are {sorted(entries)})"
                )
            if preset not in entries[name]:
                raise PlumblineError(
                    f"{path}: targets.{target}.measurements: {name!r} has no options at preset {preset!r}; add "
                    f"measurements.{name}.{preset}"
                )
    for name, entry in entries.items():
        for group in entry.get("runs", ()):
            if group not in definition["runs"]:
                raise PlumblineError(
                    f"{path}: measurements.{name}.runs: there is no group of runs {group!r}"
                    f"{nearest(group, definition['runs'])} (there are {sorted(definition['runs'])})"
                )
