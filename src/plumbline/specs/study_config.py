"""Makes the run specs of a study from its YAML. Imports no torch; thousands of runs take seconds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import sha256_text
from plumbline.specs import corpus, small_file, small_runs, study_folders, study_names, suites, sweep
from plumbline.specs.field_types import Size
from plumbline.specs.measurement import Measurement, measurements
from plumbline.specs.paper import Paper
from plumbline.specs.spec import RunSpec
from plumbline.specs.spec_layers import check_scale, make_spec
from plumbline.specs.study_extension import complete_study
from plumbline.specs.yaml_files import ROOT, load_study


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run: its spec, the groups of a study that it belongs to, and its size class (no part of the spec).

    `scored_by`: a study and its suite, where that is another one than the suite of the study that it extends, which is
    what the spec of the run names.
    """

    spec: RunSpec
    groups: tuple[str, ...]
    size: Size = "one_gpu"
    scored_by: tuple[str, str] | None = None

    @property
    def key(self) -> str:
        """The run's place among the runs: ``study/scale/method/sSEED``."""
        return self.spec.key

    @property
    def suite(self) -> str:
        """The suite that it is scored on; empty if it is not scored."""
        return self.scored_by[1] if self.scored_by else self.spec.suite

    @property
    def scores_key(self) -> str:
        """Where its scores belong: as `key`, of the study that scores it."""
        return "/".join([self.scored_by[0], *self.key.split("/")[1:]]) if self.scored_by else self.key


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A study under one preset, of the project `root`.

    `requested_runs`: those that are read by targets alone that are made on request. `small_runs`: those of small.yaml,
    at the preset of small models.
    """

    name: str
    preset: str
    definition: dict[str, Any]
    runs: dict[str, Run]
    requested_runs: dict[str, Run] = field(default_factory=dict)
    small_runs: dict[str, Run] = field(default_factory=dict)
    root: Path = ROOT

    @property
    def file(self) -> str:
        """The YAML that defines it, as messages and pages name it."""
        return self.definition.get("file") or study_folders.yaml_of(self.name, self.root)

    @property
    def code(self) -> str:
        """The name of the study whose tables, figures and printed numbers are used: this one, or the one it extends."""
        return self.definition.get("extends", self.name)

    @property
    def paper(self) -> Paper | None:
        """The published document that it is of; a study that extends another one has the other one's."""
        return Paper.of(self.definition)

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """The methods of the comparison with their YAML entries, in order; each point of a sweep counts as a method."""
        entries = self.definition["methods"]
        entries_of_names = [(name, entries[name.partition(".")[0]]) for name in self.definition["comparison"]]
        return {method: entry for name, entry in entries_of_names for method in self.points(name) or [name]}

    @property
    def variants(self) -> list[str]:
        """The variants of the comparison's methods and of arms, as ``<method>.<variant>``, in the YAML's order."""
        return sweep.variants(self.definition)

    def points(self, method: str) -> dict[str, sweep.Point]:
        """Full name -> axis -> value, for each point of a swept method or the one named; empty without a sweep."""
        name = method.partition(".")[0]
        all_points = sweep.points(name, self.definition["methods"].get(name, {}))
        return {full: point for full, point in all_points.items() if method in (name, full)}

    @property
    def noise_floor(self) -> dict[str, Any] | None:
        """The YAML's entry on the noise floor (its reference and other references); None if the study has none."""
        return self.definition.get("noise_floor")

    @property
    def reference(self) -> str | None:
        """The method that the others are compared with; None if the study has no noise floor."""
        return None if self.noise_floor is None else self.noise_floor["reference"]

    @property
    def m(self) -> int:
        """Number of tests that a correction for multiplicity counts: all methods but the reference, or the YAML's
        `m`."""
        return self.definition.get("m", len(self.methods) - (self.reference in self.methods))

    @property
    def suite(self) -> suites.Suite | None:
        """The evaluation suite; None if nothing is evaluated."""
        return suites.suite(self.definition["suite"]) if "suite" in self.definition else None

    @property
    def other_suite(self) -> suites.Suite | None:
        """The suite, of a study that extends another one and is not scored on what that is scored on."""
        extended_suite = self.definition.get("extended_suite", self.definition.get("suite"))
        return self.suite if self.definition.get("suite") != extended_suite else None

    @property
    def corpus(self) -> str:
        """The name of the corpus that the study's runs read."""
        return self.definition["corpus"]

    @property
    def other_texts(self) -> str:
        """The sources of the runs' texts where they are not the paper's data set, though the preset is `paper`; else
        empty.

        A run on other texts does not reproduce the paper's numbers, nor does one of another size.
        """
        if self.preset != corpus.REPRODUCTION:
            return ""
        return " and ".join(sorted({run.spec.data.source for run in self.runs.values()} - {corpus.DOCUMENTS}))

    @property
    def preset_named(self) -> str:
        """The preset as pictures and rows name it, with whose texts they are where that makes them no reproduction, and
        the suite where it is not that of the study whose tables these are."""
        texts = f", texts: {self.other_texts}" if self.other_texts else ""
        return f"{self.preset}{texts}" + (f", suite: {self.other_suite.name}" if self.other_suite else "")

    @property
    def measurements(self) -> dict[str, Measurement]:
        """What the study measures in addition to its runs under this preset, by name."""
        return measurements(self.definition, self.code, self.preset)

    def scale_label(self, scale: str) -> str:
        """The printed name of a scale under this preset, such as 1.2B."""
        return self.definition["scales"][scale][self.preset]["label"]

    def group(self, *names: str) -> list[Run]:
        """The runs of any of the named groups, in order."""
        return [run for run in self.every_run.values() if set(run.groups) & set(names)]

    def list_read_runs(self, target: str, kind: str) -> list[Run]:
        """The runs whose scores, examples or probes (`kind`) a table or figure reads: all of its runs, or those of the
        groups that `read_of` names."""
        entry = self.definition["targets"][target]
        return self.group(*entry.get("read_of", {}).get(kind, entry["runs"])) if kind in entry["reads"] else []

    @property
    def every_run(self) -> dict[str, Run]:
        """The runs, those that are made on request among them."""
        return self.runs | self.requested_runs | self.small_runs

    @property
    def usual_targets(self) -> dict[str, dict[str, Any]]:
        """The targets that belong to the whole study: all without ``on_request: true``."""
        return {name: entry for name, entry in self.definition["targets"].items() if not entry.get("on_request")}

    @property
    def usual_groups(self) -> list[str]:
        """The groups of runs that are not made on request alone."""
        requested = study_names.list_requested_groups(self.definition)
        return [group for group in self.definition["runs"] if group not in requested]

    @property
    def targets_with_claims(self) -> dict[str, dict[str, Any]]:
        """The targets whose runs, scores, probes and measurements claims rest on: all without ``claims: false`` that
        belong to the whole study."""
        return {name: entry for name, entry in self.usual_targets.items() if entry.get("claims", True)}

    @property
    def claimed_groups(self) -> list[str]:
        """The groups of runs on which claims rest: all except those that only targets with ``claims: false`` read, or
        targets that are made on request."""
        read_groups, claimed_groups = (
            {group for entry in targets.values() for group in sum(entry.get("read_of", {}).values(), entry["runs"])}
            for targets in (self.definition["targets"], self.targets_with_claims)
        )
        return [group for group in self.definition["runs"] if group in claimed_groups or group not in read_groups]

    @property
    def reason_without_claims(self) -> str:
        """Why no claims can be judged under this preset, with what to do; empty where they can: its own paper makes
        some, and a target speaks to them."""
        if self.code != self.name:
            return (
                f"{self.name} makes no claims: it extends {self.code}, whose paper does; ask for those of {self.code}"
            )
        if not self.targets_with_claims:
            other_presets = sorted({*chain(*self.definition["scales"].values())} - {self.preset})
            return (
                f"{self.name} has no claims at preset {self.preset}: they rest on targets of {self.file} without "
                f"`on_request` and `claims: false`, and none is there; ask at another preset (its scales "
                f"have {other_presets})"
            )
        path = study_folders.folder(self.name, self.root) / study_folders.CLAIMS
        if not path.exists():
            file = study_folders.format_path(path, self.root)
            return f"{self.name} makes no claims: there is no {file}; write it (studies/README.md)"
        return ""

    def key(self, scale: str, method: str, seed: int) -> str:
        """The key of a run of this study; a run of an inherited method belongs to the study that is extended."""
        study = self.name if method.partition(".")[0] not in self.definition.get("inherited", ()) else self.code
        return f"{study}/{scale}/{method}/s{seed}"

    def label(self, method: str) -> str:
        """The printed name of a method or an arm; that of a variant or a sweep point states which one in brackets."""
        name, _, variant = method.partition(".")
        entry = self.definition["methods"].get(name) or self.definition.get("arms", {})[name]
        point = self.points(method).get(method)
        suffix = sweep.label(point) if point else variant.replace("_", " ")
        return f"{entry['label']} ({suffix})" if suffix else entry["label"]


def load(
    name: str,
    preset: str,
    root: Path = ROOT,
    source: str = corpus.AS_THE_CORPUS_SAYS,
    sizes: Collection[str] = (),
) -> Study:
    """Read a study's YAML and make the spec of every run under `preset`.

    Args:
        source: replaces the source of the corpus's texts, unless it is `corpus`.
        sizes: of the small models, those whose runs are made; empty: all.

    Raises:
        PlumblineError: anything in the YAML that cannot be meant; the message names the key and the file.
    """
    path = study_folders.yaml_of(name, root)
    definition = complete_study(load_study(name, root), path, root)
    parent = load(definition["extends"], preset, root, source) if "extends" in definition else None
    has_small = preset == small_file.SMALL_PRESET and small_file.path_of(name, root).exists()
    small = small_file.load_small(name, root) if has_small else None
    for size in sizes:
        size_names = list(small.sizes) if small else []
        if size not in size_names:
            raise PlumblineError(
                f"config/config.yaml (with --config): sizes: {name} states nothing of a size {size!r} at preset "
                f"{preset}{nearest(size, size_names)}; name sizes of its {study_folders.SMALL} (there are "
                f"{size_names}) and preset={small_file.SMALL_PRESET}, or all"
            )
    if small is None:
        return make_study(definition, path, preset, root, source, parent)
    definition = small_runs.add_targets(definition, small, root)
    study = make_study(definition, path, preset, root, source, parent)
    stated_runs = small_runs.list_stated_runs(definition, small, root, source)
    specs = small_runs.list_specs(run for run in stated_runs if not sizes or run.size in sizes)
    runs = {key: Run(spec=spec, groups=groups) for key, (spec, groups) in specs.items()}
    return dataclasses.replace(study, small_runs=runs)


def make_study(
    definition: dict[str, Any], path: str, preset: str, root: Path, source: str, parent: Study | None
) -> Study:
    """Make the study of a complete YAML.

    Args:
        definition: the content of the YAML, completed by `complete_study`.
        path: the YAML's path, for messages.
        source: replaces the source of the corpus's texts, unless it is `corpus`.
        parent: the study that it extends, if any.

    Raises:
        PlumblineError: as `load`.
    """
    study_names.check_names(definition, path, preset)
    texts = corpus.load(definition["corpus"], preset, source, root, f"{path}: ")
    runs: dict[str, Run] = {}
    for group, entries in definition["runs"].items():
        for entry in entries:
            where = f"{path}: runs.{group}"
            is_at_preset = preset in entry.get("presets", [preset])
            if is_at_preset:
                check_scale(definition, entry["scale"], preset, path)
            for method in sweep.list_named_runs(definition, entry, where):
                # Names are checked under every preset.
                if not study_names.is_wanted(definition, method, preset, where) or not is_at_preset:
                    continue
                first = _run(definition, parent, texts, preset, entry["scale"], method, entry["seeds"][0], path)
                for seed in entry["seeds"]:  # runs of one method share all that is the same
                    spec = msgspec.structs.replace(first.spec, init_seed=seed)
                    earlier_run = runs.get(spec.key)
                    groups = (*earlier_run.groups, group) if earlier_run else (group,)
                    runs[spec.key] = dataclasses.replace(first, spec=spec, groups=groups)
    requested_groups = study_names.list_requested_groups(definition)
    usual_runs = {key: run for key, run in runs.items() if not requested_groups.issuperset(run.groups)}
    requested_runs = {key: run for key, run in runs.items() if key not in usual_runs}
    name = definition["study"]
    return Study(
        name=name, preset=preset, definition=definition, runs=usual_runs, requested_runs=requested_runs, root=root
    )


def has_preset(name: str, preset: str, root: Path = ROOT) -> bool:
    """Whether a study, or the one it extends, has a scale under a preset."""
    definition = load_study(name, root)
    scales = load_study(definition["extends"], root)["scales"] if "extends" in definition else definition["scales"]
    return any(preset in presets for presets in scales.values())


def has_targets(name: str, preset: str, root: Path = ROOT) -> bool:
    """Whether a study has runs under a preset: at a scale, or the small models that it states."""
    small = preset == small_file.SMALL_PRESET and small_file.path_of(name, root).exists()
    return small or has_preset(name, preset, root)


def paper_of(name: str, root: Path = ROOT) -> Paper | None:
    """The paper of a study, or of the one it extends; None if a folder holds nothing but printed numbers."""
    if not (study_folders.folder(name, root) / study_folders.YAML).is_file():
        return None
    definition = load_study(name, root)
    return Paper.of(
        definition if "paper" in definition or "extends" not in definition else load_study(definition["extends"], root)
    )


def _run(
    definition: dict[str, Any],
    parent: Study | None,
    texts: corpus.Corpus,
    preset: str,
    scale: str,
    method: str,
    seed: int,
    path: str,
) -> Run:
    """A run of the study's own, or of the study that it extends: the same spec, so the same finished run."""
    size = definition["scales"][scale][preset].get("size", "one_gpu")
    owner = (
        definition if parent is None or method.partition(".")[0] not in definition["inherited"] else parent.definition
    )
    spec, suite = make_spec(owner, texts, preset, scale, method, seed, path), definition.get("suite", "")
    return Run(spec=spec, groups=(), size=size, scored_by=None if suite == spec.suite else (definition["study"], suite))


def hash_expected_runs(runs: list[Run]) -> str:
    """A short hash of the runs that a table expects: key, run id and groups, and where their scores lie if that is
    elsewhere. The list itself is nothing for a command line, where one word holds 128 KiB at most."""
    entries = [
        {"key": run.key, "run_id": run.spec.run_id, "groups": run.groups}
        | ({"scores": run.scores_key} if run.scores_key != run.key else {})
        for run in runs
    ]
    return sha256_text(json.dumps(entries))[:16]
