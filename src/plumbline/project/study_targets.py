"""Names what can be requested: tables, figures, claims and pages of each study, and what each is made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.project.configuration import Configuration
from plumbline.project.paths import RESULTS, WorkflowPaths
from plumbline.project.planned_measurements import PlannedMeasurements
from plumbline.specs import study_folders
from plumbline.specs.study_config import Run, hash_expected_runs
from plumbline.specs.yaml_files import papers

#: Ending of the file that stands for a target of each kind.
ENDINGS = {"table": "csv", "figure": "png"}


class StudyTargets:
    """The targets of a configuration, and the files that they read."""

    def __init__(self, configuration: Configuration, paths: WorkflowPaths, measurements: PlannedMeasurements) -> None:
        self.configuration, self.paths, self.measurements = configuration, paths, measurements

    def entry(self, study: str, target: str, kind: str) -> dict[str, Any]:
        """Look up what a study's YAML states of a table or figure (`kind`).

        Raises:
            PlumblineError: the study has no such target.
        """
        entries = self.configuration.study(study).definition["targets"]
        names = [name for name, entry in entries.items() if entry["kind"] == kind]
        if target not in names:
            raise PlumblineError(
                f"{self.configuration.study(study).file}: targets: no {kind} {target!r}{nearest(target, names)} "
                f"(there are {names})"
            )
        return entries[target]

    def runs(self, study: str, target: str) -> list[Run]:
        """List the runs that a table or figure needs."""
        return self.configuration.studies[study].group(
            *self.configuration.studies[study].definition["targets"][target]["runs"]
        )

    def list_read_files(self, study: str, target: str) -> list[str]:
        """List the files that a table or figure reads: its runs, their scores and probes, measurements, and printed
        numbers.
        """
        entry = self.configuration.studies[study].definition["targets"][target]
        runs = self.runs(study, target)
        paths = [self.paths.run(run, name) for run in runs for name in ("outcome.json", "manifest.json")]
        paths += [self.paths.run(run, "metrics.parquet") for run in runs]
        for kind, path in (
            ("scores", self.paths.scores),
            ("examples", self.paths.examples),
            ("probes", self.paths.probes),
        ):
            paths += [path(run) for run in self.configuration.studies[study].list_read_runs(target, kind)]
        return paths + self.measurements.files(study, target) + self.list_printed_files(study, entry["published"])

    def packs(self, study: str, target: str) -> list[tuple[str, int, str]]:
        """List the packs whose manifests a table or figure reads: corpus, context and split of each folder."""
        loaded = self.configuration.studies[study]
        if "packs" not in loaded.definition["targets"][target]["reads"]:
            return []
        specs = [run.spec for run in loaded.runs.values()]
        places = {(spec.data.corpus, spec.model.context) for spec in specs}
        return [(corpus, context, split) for corpus, context in sorted(places) for split in ("train", "validation")]

    def hash_runs(self, study: str, target: str) -> str:
        """Hash the runs that a target needs, so that its rule runs again when they are others.

        The hash alone is in the rule's parameters; the job finds out which runs they are.
        """
        return hash_expected_runs(self.runs(study, target))

    def hash_claimed_runs(self, study: str) -> str:
        """Hash the runs of a study on which its claims rest."""
        loaded = self.configuration.studies[study]
        return hash_expected_runs(loaded.group(*loaded.claimed_groups))

    def claims_files(self, study: str) -> list[str]:
        """List the files that the claims of a study rest on.

        They are what its targets read, except for targets that state otherwise, all printed numbers, and how often each
        claim would be reproduced.

        Raises:
            PlumblineError: there are no claims to judge.
        """
        loaded = self.configuration.study(study)
        if reason := loaded.reason_without_claims:
            raise PlumblineError(reason)
        paths = {path for target in loaded.targets_with_claims for path in self.list_read_files(study, target)}
        rates = self._make_path(study, study_folders.RATES)
        paths |= {study_folders.format_path(rates, self.configuration.root)} if rates.exists() else set()
        return sorted(paths | set(self.list_printed_files(study)))

    def list_printed_files(self, study: str, names: list[str] | None = None) -> list[str]:
        """List the files of a study's printed numbers, all of them or those named without their ending.

        Raises:
            PlumblineError: there is no such file.
        """
        code_of = self.configuration.studies[study].code if study in self.configuration.studies else study
        root = self.configuration.root
        folder = study_folders.folder(code_of, root) / study_folders.PUBLISHED
        paths = {path.stem: study_folders.format_path(path, root) for path in sorted(folder.glob("*"))}
        for name in names or ():
            if name not in paths:
                raise PlumblineError(
                    f"{study_folders.yaml_of(study, root)}: targets: published: there is no {name!r} in "
                    f"{study_folders.format_path(folder, root)}{nearest(name, paths)} (there are {sorted(paths)})"
                )
        return [paths[name] for name in (paths if names is None else names)]

    def names(self, kind: str) -> list[str]:
        """List the names of all tables, or of all figures (`kind`), of the configured studies."""
        return sorted(
            {
                name
                for study in self.configuration.studies.values()
                for name, entry in study.definition["targets"].items()
                if entry["kind"] == kind
            }
        )

    def has_claims(self, study: str) -> bool:
        """Whether a study's own paper makes claims that a target here speaks to (a study that extends another one makes
        none)."""
        return not self.configuration.studies[study].reason_without_claims

    def products(self, study: str) -> list[str]:
        """List every product of a study that is not made on request, as files below this preset's folder of results."""
        entries = self.configuration.studies[study].usual_targets
        files = [f"{study}/{name}.{ENDINGS[entry['kind']]}" for name, entry in entries.items()]
        return files + [f"{study}/claims.csv"] * self.has_claims(study) + [f"{study}/interpretations.md"]

    def list_all_products(self) -> list[str]:
        """List what the target `all` makes: every product of the configured studies, copies of the main study's, and
        the audit.

        Raises:
            PlumblineError: a study is broken.
        """
        for study in self.configuration.broken:
            self.configuration.require_whole(study)
        studies, main, copies = self.configuration.studies, self.configuration.config["main_study"], []
        files = [f"{self.paths.results}/{path}" for study in studies for path in self.products(study)]
        if main in studies:
            for name, entry in studies[main].usual_targets.items():
                copies.append(f"{RESULTS}/{name}.{ENDINGS[entry['kind']]}")
        return [*files, *copies, f"{RESULTS}/audit.csv"]

    def list_audited_files(self) -> list[str]:
        """List the files that the audit reads: printed numbers of every paper, its findings, the numbers that no
        row checks, and its sentences with a number.
        """
        files = []
        for study in papers(self.configuration.root):
            files += self.list_printed_files(study)
            paths = [self._make_path(study, f"{name}.yaml") for name in ("findings", "unchecked_numbers", "sentences")]
            files += [study_folders.format_path(path, self.configuration.root) for path in paths if path.exists()]
        return files

    def _make_path(self, study: str, file: str) -> Path:
        """A file of a study's folder."""
        return study_folders.folder(study, self.configuration.root) / file

    def copies(self, kind: str) -> list[str]:
        """List the names under results/ (without ending) that are copies: of tables, figures, or pages of numbers
        (`kind`).
        """
        if kind == "page":
            return [
                "audit",
                "plan",
                *(f"{study}/claims" for study in self.configuration.studies if self.has_claims(study)),
            ]
        all_names = []
        for study, entry in self.configuration.studies.items():
            names = [name for name, target in entry.definition["targets"].items() if target["kind"] == kind]
            all_names += [f"{study}/{name}" for name in names]
            all_names += names if study == self.configuration.config["main_study"] else []
        return all_names

    def find_copy_source(self, name: str) -> str:
        """Name the file that a copy under results/ is a copy of, without its ending."""
        main = self.configuration.config["main_study"]
        is_path = name in ("audit", "plan") or "/" in name
        return f"{self.paths.results}/{name}" if is_path else f"{self.paths.results}/{main}/{name}"
