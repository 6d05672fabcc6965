"""From a study's YAML to its runs: YAML -> list of RunSpec. Imports no torch; thousands of runs take seconds."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError
from plumbline.specs.components import SLOTS
from plumbline.specs.config import ROOT, load_study
from plumbline.specs.spec import RunSpec

#: The parts of a run spec that an overlay may change.
PARTS = ("data_seed", "model", "optimizer", "schedule", "train", "data", "interventions", "probes")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run: its spec, and the groups of its study that it belongs to."""

    spec: RunSpec
    groups: tuple[str, ...]

    @property
    def key(self) -> str:
        """``study/scale/method/sSEED``."""
        return self.spec.key


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A study under one preset."""

    name: str
    preset: str
    sheet: dict[str, Any]
    runs: dict[str, Run]

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """Methods of the comparison, in the YAML's order."""
        return self.sheet["methods"]

    def scale_label(self, scale: str) -> str:
        """What a scale is called under this preset, such as 1.2B."""
        return self.sheet["scales"][scale][self.preset]["label"]

    def group(self, *names: str) -> list[Run]:
        """Runs of any of the named groups, in order."""
        return [run for run in self.runs.values() if set(run.groups) & set(names)]

    def label(self, method: str) -> str:
        """A method's or an arm's printed name; a reading shows which."""
        name, _, reading = method.partition(".")
        entry = self.sheet["methods"].get(name) or self.sheet["arms"][name]
        return f"{entry['label']} ({reading.replace('_', ' ')})" if reading else entry["label"]


def overlay(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with `change` on top: dictionaries merge, except that naming a component replaces the whole of it."""
    merged = dict(base)
    for key, value in change.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            renamed = key in SLOTS and value.get("name", before.get("name")) != before.get("name")
            merged[key] = dict(value) if renamed else overlay(before, value)
        else:
            merged[key] = value
    return merged


def load(name: str, preset: str, root: Path = ROOT) -> Study:
    """Read a study's YAML and make the spec of every run under `preset`.

    Raises:
        PlumblineError: anything in the YAML that cannot be meant; the message names the key and the file.
    """
    sheet = load_study(name, root)
    path = f"config/studies/{name}/study.yaml"
    runs: dict[str, Run] = {}
    for group, entries in sheet["runs"].items():
        for entry in entries:
            where = f"{path}: runs.{group}"
            methods = list(sheet["methods"]) if entry["methods"] == "all" else entry["methods"]
            for method in methods:
                if not _wanted(sheet, method, preset, where):
                    continue
                for seed in entry["seeds"]:
                    spec = make_spec(sheet, preset, entry["scale"], method, seed, path)
                    before = runs.get(spec.key)
                    groups = (*before.groups, group) if before else (group,)
                    runs[spec.key] = Run(spec=spec, groups=groups)
    study = Study(name=name, preset=preset, sheet=sheet, runs=runs)
    _check_references(study, path)
    return study


def make_spec(sheet: dict[str, Any], preset: str, scale: str, method: str, seed: int, path: str) -> RunSpec:
    """The spec of one run: recipe, then scale, then method (and reading), then arm."""
    if scale not in sheet["scales"] or preset not in sheet["scales"][scale]:
        known = [name for name, presets in sheet["scales"].items() if preset in presets]
        raise PlumblineError(f"{path}: scales: no scale {scale!r} at preset {preset!r} (there are {known})")
    layers = [sheet["recipe"], sheet["scales"][scale][preset], *_method_layers(sheet, method, preset, path)]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = overlay(merged, {key: value for key, value in layer.items() if key in PARTS})
    identity = {"study": sheet["study"], "preset": preset, "scale": scale, "method": method, "init_seed": seed}
    try:
        return RunSpec.from_dict(merged | identity)
    except PlumblineError as error:
        raise PlumblineError(f"{path}: {error}") from error


def _method_layers(sheet: dict[str, Any], method: str, preset: str, path: str) -> list[dict[str, Any]]:
    if method in sheet["arms"]:
        arm = sheet["arms"][method]
        return [*_method_layers(sheet, arm["of"], preset, path), arm, arm.get(preset, {})]
    name, _, reading = method.partition(".")
    entry = _entry(sheet, name, path)
    if not reading:
        return [entry]
    if reading not in entry.get("readings", {}):
        known = sorted(entry.get("readings", {}))
        raise PlumblineError(f"{path}: methods.{name}.readings: no reading {reading!r} (there are {known})")
    return [entry, entry["readings"][reading]]


def _entry(sheet: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    if name in sheet["methods"]:
        return sheet["methods"][name]
    known = [*sheet["methods"], *sheet["arms"]]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise PlumblineError(f"{path}: runs: there is no method or arm {name!r}{hint} (there are {known})")


def _wanted(sheet: dict[str, Any], method: str, preset: str, where: str) -> bool:
    arm = sheet["arms"].get(method)
    if arm is None:
        _entry(sheet, method.partition(".")[0], where)
        return True
    return preset in arm.get("presets", [preset])


def _check_references(study: Study, path: str) -> None:
    for target, entry in study.sheet["targets"].items():
        unknown = sorted(set(entry["runs"]) - set(study.sheet["runs"]))
        if unknown:
            raise PlumblineError(f"{path}: targets.{target}.runs: there is no group of runs {unknown[0]!r}")
    for method in [study.sheet["noise_floor"]["reference"], *study.sheet["noise_floor"]["others"]]:
        _entry(study.sheet, method, f"{path}: noise_floor")
    both = sorted(set(study.sheet["methods"]) & set(study.sheet["arms"]))
    if both:
        raise PlumblineError(f"{path}: arms: {both[0]!r} is also the name of a method; rename the arm")


def expected_json(runs: list[Run]) -> str:
    """The runs that a table expects, as one string for a command line: key, run id and groups."""
    return json.dumps([{"key": run.key, "run_id": run.spec.run_id, "groups": run.groups} for run in runs])
