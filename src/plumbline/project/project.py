"""Loads a configuration as a project: its runs, and a part for each thing that the workflow asks about them."""

from __future__ import annotations

import dataclasses
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline.core.errors import PlumblineError, nearest, visible
from plumbline.project import profiles
from plumbline.project.bundle_products import BundleProducts
from plumbline.project.configuration import Configuration, list_sizes
from plumbline.project.external_inputs import ExternalInputs, UserTokenFiles
from plumbline.project.fingerprints import Fingerprints
from plumbline.project.job_command_lines import JobCommandLines
from plumbline.project.paths import WorkflowPaths
from plumbline.project.planned_measurements import PlannedMeasurements
from plumbline.project.study_targets import StudyTargets
from plumbline.project.unknown_paths import UnknownPaths
from plumbline.project.verdict_pages import VerdictPages
from plumbline.specs import (
    code_facts,
    corpus,
    duplicate_runs,
    experiment_runs,
    own_methods_file,
    study_config,
    study_folders,
    suites,
)
from plumbline.specs.config_files import ConfigFile
from plumbline.specs.yaml_files import ROOT, check, load_preset, require_work
from plumbline.specs.yaml_files import studies as known_studies


@dataclass(frozen=True, kw_only=True)
class Project(Configuration):
    """A configuration and everything that the rules need to know about it, with a part for each kind of question.

    `project.paths.run(run)`, `project.targets.list_read_files(study, target)`, `project.fingerprints.verdict()`.
    """

    @cached_property
    def paths(self) -> WorkflowPaths:
        """The paths of all files below work/ and results/."""
        return WorkflowPaths(self)

    @cached_property
    def tokens(self) -> UserTokenFiles:
        """The user's own token files."""
        return UserTokenFiles(self, self.paths)

    @cached_property
    def inputs(self) -> ExternalInputs:
        """The packages and files that are read from outside the project."""
        return ExternalInputs(self, self.tokens)

    @cached_property
    def measurements(self) -> PlannedMeasurements:
        """The measurements that are made apart from the runs."""
        return PlannedMeasurements(self, self.paths)

    @cached_property
    def targets(self) -> StudyTargets:
        """The targets that can be requested, and the files that they read."""
        return StudyTargets(self, self.paths, self.measurements)

    @cached_property
    def verdicts(self) -> VerdictPages:
        """The verdict on the user's own file."""
        return VerdictPages(self, self.paths)

    @cached_property
    def bundles(self) -> BundleProducts:
        """The products and files that a release bundle packs."""
        return BundleProducts(self, self.paths, self.targets)

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """The fingerprints that determine when a product has to be rebuilt."""
        return Fingerprints(self, self.paths, self.inputs, self.targets, self.verdicts)

    @cached_property
    def commands(self) -> JobCommandLines:
        """The command lines of the verbs that the rules call."""
        return JobCommandLines(self, self.paths, self.inputs)

    @cached_property
    def unknown_paths(self) -> UnknownPaths:
        """The answers to paths that nothing makes."""
        return UnknownPaths(self, self.paths, self.targets, self.measurements, self.verdicts)

    def report_files(self) -> list[str]:
        """List what the report shows: every product of the configured studies, the audit, and the requested verdict."""
        products = [path for study in self.studies for path in self.targets.products(study)]
        verdict = [path for path in self.verdicts.pages if path.endswith(".md")]
        return [f"{self.paths.results}/{path}" for path in [*products, "audit.csv", *verdict]]


def use_this_interpreter() -> None:
    """Make the `python` of every rule the one that runs Snakemake, whether or not its environment is activated."""
    folder = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if path.split(os.pathsep)[0] != folder:
        os.environ["PATH"] = f"{folder}{os.pathsep}{path}"


def _load_every_study(
    names: list[str], preset: str, root: Path, source: str
) -> tuple[dict[str, study_config.Study], dict[str, str]]:
    """All studies that have something at a preset, and those that cannot be loaded with the reason, which is warned of.
    (A study without anything at a preset, or a broken one, is an error where it is requested by name.)

    Raises:
        PlumblineError: none of them can be loaded.
    """
    studies, broken = {}, {}
    for name in names:
        try:
            if study_config.has_targets(name, preset, root):
                study = study_config.load(name, preset, root, source)
                if "suite" in study.definition:
                    suites.suite(study.definition["suite"])
                studies[name] = study
        except PlumblineError as error:
            broken[name] = str(error)
    if broken and not studies:
        raise PlumblineError(next(iter(broken.values())))
    for message in broken.values():
        print(f"warning: {visible(message)}; what needs this study is refused until that is put right", file=sys.stderr)
    return studies, broken


def _load_corpus(name: str, config: dict[str, Any], root: Path) -> corpus.Corpus:
    """A corpus of a configuration, which may name another folder of texts and another rule for copies.

    Raises:
        PlumblineError: it names one, and texts are not read from a folder.
    """
    loaded_corpus = corpus.load(name, config["preset"], config["data"]["source"], root)
    folder = config["data"].get("folder", "")
    if folder and config["data"]["source"] != "local":
        raise PlumblineError(
            f"config/config.yaml (with --config): data.folder: {folder} is read where data.source is `local`, not "
            f"`{config['data']['source']}`; write --config 'data={{source: local, folder: {folder}}}'"
        )
    copies = config["data"].get("copies", corpus.AS_THE_CORPUS_SAYS)
    if copies != corpus.AS_THE_CORPUS_SAYS:
        loaded_corpus = structs.replace(loaded_corpus, copies=copies)
    return structs.replace(loaded_corpus, folder=folder) if folder else loaded_corpus


def load(config: dict[str, Any], root: Path = ROOT) -> Project:
    """Check a configuration (config.yaml with command-line overrides), and load what it names as a project.

    Raises:
        PlumblineError: the configuration or a study's file cannot be meant.
    """
    code_facts.keep_facts_at_exit()
    config = config | {"experiment": experiment_runs.convert_numbers(config.get("experiment", {}))}
    check(config, ConfigFile, "config/config.yaml (with --config)")
    require_work(config, root)
    preset, source = load_preset(config["preset"], root), config["data"]["source"]
    names, sizes = known_studies(root), list_sizes(config)
    selected = config["studies"]
    studies, broken = {}, dict[str, str]()
    if sizes and (selected == "all" or len(selected) > 1):
        raise PlumblineError(
            f"config/config.yaml (with --config): sizes: {', '.join(sizes)} are of one study's small models; name it, "
            "--config 'studies=[STUDY]', or say all"
        )
    if selected == "all":
        studies, broken, selected = *_load_every_study(names, config["preset"], root, source), []
    for key, requested in (("studies", selected), ("main_study", [config["main_study"]])):
        for name in requested:
            if name not in names:
                raise PlumblineError(
                    f"config/config.yaml: {key}: there is no study {name!r}{nearest(name, names)} (there are {names})"
                )
    studies |= {name: study_config.load(name, config["preset"], root, source, sizes) for name in selected}
    own_file = own_methods_file.load(config["mine"], config["preset"], root, source) if config.get("mine") else None
    corpus_names = {study.corpus for study in [*studies.values(), *([own_file.study] if own_file else [])]}
    corpora = {name: _load_corpus(name, config, root) for name in sorted(corpus_names)}
    project = Project(
        config=config, preset=preset, studies=studies, corpora=corpora, mine=own_file, root=root, broken=broken
    )
    for message in study_folders.list_non_studies(root):
        print(f"warning: {visible(message)}", file=sys.stderr)
    for study in project.planned_studies:
        if "suite" in study.definition:
            suites.suite(study.definition["suite"])
        extended = None
        if study.code != study.name:
            extended = studies.get(study.code) or study_config.load(study.code, config["preset"], root, source)
        folder = study_folders.folder(study.code, root)
        for message in [*study_folders.misspelt(folder), *duplicate_runs.find_unmeant(study, extended)]:
            print(f"warning: {visible(message)}", file=sys.stderr)
    if experiment := config["experiment"]:
        owner = (
            own_file.study if own_file and experiment["study"] == own_file.name else project.study(experiment["study"])
        )
        project = dataclasses.replace(project, experiment=experiment_runs.load(experiment, owner, root, source))
    profiles.remember(project)
    return project
