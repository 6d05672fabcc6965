"""Names what a release bundle packs of a configuration: its products, and the light files that they are made from.

Nothing heavy and nobody's texts: no weights, no checkpoints, no corpus, no tokenizer, no items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.project.configuration import Configuration
from plumbline.project.paths import WorkflowPaths
from plumbline.project.study_targets import ENDINGS, StudyTargets
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import studies as known_studies

#: The files of a product by its kind; the first one stands for it.
FILES = {
    "table": (".csv", ".md", ".tex", ".all.tex", ".notes.tex", ".provenance.json"),
    "figure": (".png", ".svg", ".csv", f".{fingerprint_file.KEY}.json"),
    "claims": (".csv", ".md", f".{fingerprint_file.KEY}.json"),
    "interpretations": (".md", f".{fingerprint_file.KEY}.json"),
    "audit": (".csv", ".md", f".{fingerprint_file.KEY}.json"),
}

#: Folders and files of the project that state what was requested, what can be, and how it is made. Of studies all
#: except their code: nothing that a bundle brings is run.
CONFIGURATION = ("config", study_folders.STUDIES, "workflow", "Snakefile")

#: Those of them that are read, by their names: others lie there by chance, or are somebody's own.
_READ = re.compile(
    r"Snakefile|workflow/(Snakefile|rules/[^/]+\.smk|report/[^/]+\.rst)"
    r"|config/((corpora|presets|suites|tasks)/)?[^/]+\.(yaml|md)"
    rf"|{study_folders.STUDIES}/([^/]+/({study_folders.PUBLISHED}/)?)?[^/]+\.(yaml|csv|md|bib|svg)"
)

#: Timings of jobs that are not products of a study.
OTHER_TIMINGS = ("verdict",)


@dataclass(frozen=True, slots=True)
class BundleProduct:
    """A product that a bundle holds: a table, figure, verdict on claims, page of interpretations, or the audit.

    The audit is of all papers: its `study` is empty. `target`: the table's or figure's name, empty for the others.
    `path`: the files below the preset's folder of results, without their endings.
    """

    study: str
    kind: str
    target: str
    path: str

    def __str__(self) -> str:
        return " ".join(word for word in (self.kind, self.study, self.target) if word)

    @property
    def files(self) -> tuple[str, ...]:
        """The product's files, below the preset's folder of results."""
        return tuple(f"{self.path}{ending}" for ending in FILES[self.kind])


def is_read(name: str) -> bool:
    """Whether a file of `CONFIGURATION`, named from the root of a project, is read by its name and place."""
    return _READ.fullmatch(name) is not None


class BundleProducts:
    """Names what the release bundle of a configuration holds."""

    def __init__(self, configuration: Configuration, paths: WorkflowPaths, targets: StudyTargets) -> None:
        self.configuration, self.paths, self.targets = configuration, paths, targets

    @property
    def products(self) -> list[BundleProduct]:
        """The products that a rebuild makes again: tables, figures, claims, interpretations and the audit."""
        products = []
        for study in self.configuration.studies:
            for name, entry in self._list_targets(study).items():
                products.append(BundleProduct(study, entry["kind"], name, f"{study}/{name}"))
            products += [BundleProduct(study, "claims", "", f"{study}/claims")] * self.targets.has_claims(study)
            products.append(BundleProduct(study, "interpretations", "", f"{study}/interpretations"))
        return [*products, BundleProduct("", "audit", "", "audit")]

    def _list_targets(self, study: str) -> dict[str, dict[str, Any]]:
        """A study's targets that are packed: its usual ones, and those made on request that are there."""
        loaded = self.configuration.studies[study]
        folder = self.configuration.root / self.paths.results / study
        requested_targets = {
            name: entry
            for name, entry in loaded.definition["targets"].items()
            if entry.get("on_request") and (folder / f"{name}.{ENDINGS[entry['kind']]}").is_file()
        }
        return loaded.usual_targets | requested_targets

    def inputs(self) -> list[str]:
        """List the files that Snakemake has to make before the archive is packed: the first file of each product."""
        return [f"{self.paths.results}/{product.files[0]}" for product in self.products]

    def work_files(self) -> list[str]:
        """List the light files below work/ that go into the bundle, as far as they are there.

        They are what the products read, the fingerprints of that, facts of the corpora, and timings.
        """
        paths = set()
        for study in self.configuration.studies:
            for target in self._list_targets(study):
                paths |= {
                    path
                    for path in self.targets.list_read_files(study, target)
                    if path.startswith(f"{self.paths.work}/")
                }
                for run in self.targets.runs(study, target):
                    frames = (self.paths.scores(run), self.paths.probes(run))
                    paths |= {fingerprint_file.sidecar_path(path).as_posix() for path in frames if path in paths}
        for name in self.configuration.corpora:
            folder = self.configuration.root / self.paths.corpus(name)
            for pattern in ("documents/documents.json", "packs/*/*/[!.]*.json", "items/*/items*.json"):
                paths |= {self._make_relative(path) for path in folder.glob(pattern)}
        return sorted(path for path in paths | self._list_timings() if (self.configuration.root / path).is_file())

    def configuration_files(self) -> list[str]:
        """The files that lie where what was requested is stated, those of every study of the project among them: the
        audit reads them all. A study of an installed package is brought by that."""
        roots = [self.configuration.root / name for name in CONFIGURATION]
        paths = [path for place in roots for path in (place, *place.rglob("*"))]
        relative = [path.relative_to(self.configuration.root) for path in paths if path.is_file()]
        names = [path.as_posix() for path in relative if not any(part.startswith(".") for part in path.parts)]
        return sorted(name for name in names if not study_folders.is_code(name))

    def _list_timings(self) -> set[str]:
        """What jobs took: those of the requested studies, and those of corpora, which belong to no study."""
        other_studies = set(known_studies(self.configuration.root)) - set(self.configuration.studies)
        files = (self.configuration.root / self.paths.work / "benchmarks").rglob("*.jsonl")
        return {
            self._make_relative(path)
            for path in files
            if path.name.partition(".")[0] not in other_studies and path.parent.name not in OTHER_TIMINGS
        }

    def _make_relative(self, path: Path) -> str:
        """A file that was looked for below the root, as the plan's own paths are; `work` may lie elsewhere."""
        return (
            path.relative_to(self.configuration.root).as_posix()
            if path.is_relative_to(self.configuration.root)
            else path.as_posix()
        )
