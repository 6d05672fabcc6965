"""From a study's YAML to its runs: YAML -> list of RunSpec. Imports no torch; thousands of runs take seconds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import sha256_text
from plumbline.specs import corpus, measurement, study_folders, suites, sweep
from plumbline.specs.components import SLOTS
from plumbline.specs.config import ROOT, load_study
from plumbline.specs.extends import extended
from plumbline.specs.measurement import Measurement, measurements
from plumbline.specs.paper import Paper
from plumbline.specs.spec import OptimizerSpec, RunSpec, ScheduleSpec

#: The parts of a run spec that an overlay may change.
PARTS = ("data_seed", "model", "optimizer", "schedule", "train", "data", "interventions", "probes")

#: What of a part stays when another component is named for it: its fields that are no component's options.
_SHARED = {"optimizer": OptimizerSpec, "schedule": ScheduleSpec}

Size = Literal["one_gpu", "node", "two_nodes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run: its spec, the groups of a study that it belongs to, and its size class (no part of the spec)."""

    spec: RunSpec
    groups: tuple[str, ...]
    size: Size = "one_gpu"

    @property
    def key(self) -> str:
        """``study/scale/method/sSEED``."""
        return self.spec.key


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A study under one preset, of the project `root`."""

    name: str
    preset: str
    sheet: dict[str, Any]
    runs: dict[str, Run]
    root: Path = ROOT

    @property
    def file(self) -> str:
        """The YAML that says it, as messages and pages name it."""
        return self.sheet.get("file") or study_folders.yaml_of(self.name, self.root)

    @property
    def code(self) -> str:
        """The study whose tables, figures and printed numbers are used: its own, or those of the one it extends."""
        return self.sheet.get("extends", self.name)

    @property
    def paper(self) -> Paper | None:
        """The published document that it is of; a study that extends another one has the other one's."""
        return Paper.of(self.sheet)

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """Methods of the comparison, in the YAML's order; each point of a sweep is one."""
        entries = self.sheet["methods"]
        named = [(name, entries[name.partition(".")[0]]) for name in self.sheet["comparison"]]
        return {method: entry for name, entry in named for method in self.points(name) or [name]}

    @property
    def readings(self) -> list[str]:
        """``<method>.<reading>`` for every reading of a method of the comparison, in the YAML's order."""
        return sweep.readings(self.sheet)

    def points(self, method: str) -> dict[str, sweep.Point]:
        """Full name -> axis -> value, for all points of a swept method or for the one named; empty without a sweep."""
        name = method.partition(".")[0]
        found = sweep.points(name, self.sheet["methods"].get(name, {}))
        return {full: point for full, point in found.items() if method in (name, full)}

    @property
    def noise_floor(self) -> dict[str, Any] | None:
        """Reference and other references of the noise floor; None where a study has none."""
        return self.sheet.get("noise_floor")

    @property
    def reference(self) -> str | None:
        """The method that the others are compared with."""
        return None if self.noise_floor is None else self.noise_floor["reference"]

    @property
    def m(self) -> int:
        """How many methods a correction for multiplicity counts: all but the reference, unless the YAML says."""
        return self.sheet.get("m", len(self.methods) - (self.reference in self.methods))

    @property
    def suite(self) -> suites.Suite | None:
        """The evaluation suite; None where nothing is evaluated."""
        return suites.suite(self.sheet["suite"]) if "suite" in self.sheet else None

    @property
    def corpus(self) -> str:
        """The corpus that its runs read."""
        return self.sheet["corpus"]

    @property
    def other_texts(self) -> str:
        """Where the texts of its runs are from, of a study that else were a reproduction, if that is not the document's
        data set: numbers of other texts are no more one than those of another size. Empty for the document's."""
        if self.preset != corpus.REPRODUCTION:
            return ""
        return " and ".join(sorted({run.spec.data.source for run in self.runs.values()} - {corpus.DOCUMENTS}))

    @property
    def preset_named(self) -> str:
        """The preset as pictures and rows name it, with whose texts they are where that makes them no reproduction."""
        return f"{self.preset}, texts: {self.other_texts}" if self.other_texts else self.preset

    @property
    def measurements(self) -> dict[str, Measurement]:
        """What is measured beside the runs under this preset, by name."""
        return measurements(self.sheet, self.code, self.preset)

    def scale_label(self, scale: str) -> str:
        """What a scale is called under this preset, such as 1.2B."""
        return self.sheet["scales"][scale][self.preset]["label"]

    def group(self, *names: str) -> list[Run]:
        """Runs of any of the named groups, in order."""
        return [run for run in self.runs.values() if set(run.groups) & set(names)]

    @property
    def claimed(self) -> dict[str, dict[str, Any]]:
        """The targets on whose runs, scores, probes and measurements claims rest: all that do not say otherwise."""
        return {name: entry for name, entry in self.sheet["targets"].items() if entry.get("claims", True)}

    @property
    def claimed_groups(self) -> list[str]:
        """The groups of runs on which claims rest: all but those of targets alone on which they do not."""
        read, claimed = (
            {group for entry in targets.values() for group in entry["runs"]}
            for targets in (self.sheet["targets"], self.claimed)
        )
        return [group for group in self.sheet["runs"] if group in claimed or group not in read]

    def key(self, scale: str, method: str, seed: int) -> str:
        """Where a run of this study belongs: a method of the study that is extended has its run there."""
        own = self.name if method.partition(".")[0] not in self.sheet.get("inherited", ()) else self.code
        return f"{own}/{scale}/{method}/s{seed}"

    def label(self, method: str) -> str:
        """A method's or an arm's printed name; a reading shows which, a point where it is."""
        name, _, reading = method.partition(".")
        entry = self.sheet["methods"].get(name) or self.sheet.get("arms", {})[name]
        point = self.points(method).get(method)
        which = sweep.label(point) if point else reading.replace("_", " ")
        return f"{entry['label']} ({which})" if which else entry["label"]


def overlay(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with `change` on top: dictionaries merge, except that naming another component drops the old one's
    options."""
    merged = dict(base)
    for key, value in change.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            renamed = value.get("name", before.get("name")) != before.get("name")
            if renamed and key in SLOTS:
                before = {}
            elif renamed and key in _SHARED:
                before = {name: kept for name, kept in before.items() if name in _SHARED[key].__struct_fields__}
            merged[key] = overlay(before, value)
        else:
            merged[key] = value
    return merged


def load(name: str, preset: str, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS) -> Study:
    """Read a study's YAML and make the spec of every run under `preset`; `source` overrides its corpus's source.

    Raises:
        PlumblineError: anything in the YAML that cannot be meant; the message names the key and the file.
    """
    path = study_folders.yaml_of(name, root)
    sheet = extended(load_study(name, root), path, root)
    parent = load(sheet["extends"], preset, root, source) if "extends" in sheet else None
    return made(sheet, path, preset, root, source, parent)


def made(sheet: dict[str, Any], path: str, preset: str, root: Path, source: str, parent: Study | None) -> Study:
    """The study of a whole sheet, which `path` says; `parent` is the study that it extends.

    Raises:
        PlumblineError: as `load`.
    """
    _check_names(sheet, path, preset)
    read = corpus.load(sheet["corpus"], preset, source, root, f"{path}: ")
    runs: dict[str, Run] = {}
    for group, entries in sheet["runs"].items():
        for entry in entries:
            where = f"{path}: runs.{group}"
            here = preset in entry.get("presets", [preset])
            if here:
                check_scale(sheet, entry["scale"], preset, path)
            for method in sweep.named_runs(sheet, entry, where):
                # Names are checked under every preset.
                if not _wanted(sheet, method, preset, where) or not here:
                    continue
                for seed in entry["seeds"]:
                    run = _run(sheet, parent, read, preset, entry["scale"], method, seed, path)
                    before = runs.get(run.key)
                    groups = (*before.groups, group) if before else (group,)
                    runs[run.key] = Run(spec=run.spec, groups=groups, size=run.size)
    return Study(name=sheet["study"], preset=preset, sheet=sheet, runs=runs, root=root)


def has_preset(name: str, preset: str, root: Path = ROOT) -> bool:
    """Whether a study, or the one it extends, has a scale under a preset."""
    sheet = load_study(name, root)
    scales = load_study(sheet["extends"], root)["scales"] if "extends" in sheet else sheet["scales"]
    return any(preset in presets for presets in scales.values())


def paper_of(name: str, root: Path = ROOT) -> Paper | None:
    """The paper of a study, or of the one it extends; None where a folder holds nothing but printed numbers."""
    if not (study_folders.folder(name, root) / study_folders.YAML).is_file():
        return None
    sheet = load_study(name, root)
    return Paper.of(sheet if "paper" in sheet or "extends" not in sheet else load_study(sheet["extends"], root))


def _run(
    sheet: dict[str, Any],
    parent: Study | None,
    read: corpus.Corpus,
    preset: str,
    scale: str,
    method: str,
    seed: int,
    path: str,
) -> Run:
    """A run of the study's own, or of the study that it extends: the same spec, so the same finished run."""
    if parent is not None and method.partition(".")[0] in sheet["inherited"]:
        spec = make_spec(parent.sheet, read, preset, scale, method, seed, path)
    else:
        spec = make_spec(sheet, read, preset, scale, method, seed, path)
    return Run(spec=spec, groups=(), size=sheet["scales"][scale][preset].get("size", "one_gpu"))


def make_spec(
    sheet: dict[str, Any], read: corpus.Corpus, preset: str, scale: str, method: str, seed: int, path: str
) -> RunSpec:
    """The spec of one run: recipe, then scale, then method (and its reading or point), then arm."""
    merged = _merged(sheet, scale, method, preset, path)
    merged["data"] = merged.get("data", {}) | {
        "corpus": read.name,
        "source": read.source,
        "tokenizer": read.tokenizer.kind,
        "tokenizer_vocabulary": read.tokenizer.vocabulary,
    }
    identity = {"study": sheet["study"], "preset": preset, "scale": scale, "method": method, "init_seed": seed}
    try:
        spec = RunSpec.from_dict(merged | identity | {"suite": sheet.get("suite", "")})
        read.require_pack(spec.data.pack, f"{spec.key}: data.pack")
    except PlumblineError as error:
        raise PlumblineError(f"{path}: {error}") from error
    return spec


def check_scale(sheet: dict[str, Any], scale: str, preset: str, path: str) -> None:
    """Refuse a scale that a study does not have under a preset.

    Raises:
        PlumblineError: naming those that it has.
    """
    if scale not in sheet["scales"] or preset not in sheet["scales"][scale]:
        known = [name for name, presets in sheet["scales"].items() if preset in presets]
        raise PlumblineError(
            f"{path}: scales: no scale {scale!r} at preset {preset!r}{nearest(scale, known)} (there are {known})"
        )


def _merged(sheet: dict[str, Any], scale: str, method: str, preset: str, path: str) -> dict[str, Any]:
    """Everything that the YAML says of a run."""
    if arm := sheet.get("arms", {}).get(method):
        sweep.require_point(arm["of"], sheet["methods"], f"{path}: arms.{method}.of")
        return _overlaid(_merged(sheet, scale, arm["of"], preset, path), arm, arm.get(preset, {}))
    name, _, reading = method.partition(".")
    entry = _entry(sheet, name, path)
    sweep.require_point(method, sheet["methods"], path)
    merged = _overlaid({}, sheet["recipe"], sheet["scales"][scale][preset], entry)
    known = sorted(entry.get("readings", {}))
    if not reading:
        return merged
    if reading in known:
        return _overlaid(merged, entry["readings"][reading])
    where = f"{path}: methods.{name}.sweep"
    if "sweep" in entry:
        return overlay(merged, sweep.change(merged, entry, sweep.one_of(name, entry, method, where), where))
    raise PlumblineError(
        f"{path}: methods.{name}.readings: no reading {reading!r}{nearest(reading, known)} (there are {known})"
    )


def _overlaid(merged: dict[str, Any], *layers: dict[str, Any]) -> dict[str, Any]:
    for layer in layers:
        merged = overlay(merged, {key: value for key, value in layer.items() if key in PARTS})
    return merged


def _entry(sheet: dict[str, Any], name: str, path: str, key: str = "runs") -> dict[str, Any]:
    if name in sheet["methods"]:
        return sheet["methods"][name]
    known = [*sheet["methods"], *sheet.get("arms", {})]
    raise PlumblineError(f"{path}: {key}: there is no method or arm {name!r}{nearest(name, known)} (there are {known})")


def _wanted(sheet: dict[str, Any], method: str, preset: str, where: str) -> bool:
    arm = sheet.get("arms", {}).get(method)
    if arm is None:
        _entry(sheet, method.partition(".")[0], where)
        return True
    return preset in arm.get("presets", [preset])


def _check_names(sheet: dict[str, Any], path: str, preset: str) -> None:
    """Groups, methods and scores that are named must be there."""
    for target, entry in sheet["targets"].items():
        for group in entry["runs"]:
            if group not in sheet["runs"]:
                raise PlumblineError(
                    f"{path}: targets.{target}.runs: there is no group of runs {group!r}"
                    f"{nearest(group, sheet['runs'])} (there are {sorted(sheet['runs'])})"
                )
        if "scores" in entry["reads"] and "suite" not in sheet:
            raise PlumblineError(f"{path}: targets.{target}.reads: scores, but the study has no `suite`; name one")
        if "examples" in entry["reads"] and "scores" not in entry["reads"]:
            raise PlumblineError(f"{path}: targets.{target}.reads: examples stand beside scores; add `scores`")
    measurement.check(sheet, path, preset)
    for name, entry in sheet["methods"].items():
        sweep.check(name, entry, path)
    floor = sheet.get("noise_floor")
    for method in [] if floor is None else [floor["reference"], *floor["others"]]:
        where = f"{path}: noise_floor"
        sweep.require_point(method, sheet["methods"], where)
        name, _, point = method.partition(".")
        entry = sheet["methods"].get(name, {})
        if "sweep" in entry and point not in entry.get("readings", {}):
            sweep.one_of(name, entry, method, where)
        else:
            _entry(sheet, method, path, "noise_floor")
    both = sorted(set(sheet["methods"]) & set(sheet.get("arms", {})))
    if both:
        raise PlumblineError(f"{path}: arms: {both[0]!r} is also the name of a method; rename the arm")


def expected_json(runs: list[Run]) -> str:
    """The runs that a table expects: key, run id and groups. As long as there are runs, so nothing for a command line,
    where one word holds 128 KiB at most."""
    return json.dumps([{"key": run.key, "run_id": run.spec.run_id, "groups": run.groups} for run in runs])


def expected_digest(runs: list[Run]) -> str:
    """Changes with the runs that a table expects: the short word that stands for them on a command line."""
    return sha256_text(expected_json(runs))[:16]
