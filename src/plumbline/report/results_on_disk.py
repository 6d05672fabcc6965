"""Finds what there is to report: runs as they ended, products that are made, and the commands that make the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.project import Project, packed_bundle
from plumbline.project.packed_bundle import PackedBundle
from plumbline.project.study_targets import ENDINGS
from plumbline.results.measurements import measurement_file
from plumbline.results.tables import provenance
from plumbline.specs.corpus import AS_THE_CORPUS_SAYS
from plumbline.specs.study_config import Run, Study

NOT_RUN, UNFINISHED, MEASURED = "not run", "unfinished", "measured"
#: What a run can be, in the order in which runs are counted.
STATES = (COMPLETED, DIVERGED, UNFINISHED, NOT_RUN, MEASURED, MISSING)
#: What can be stated of a run in addition to how it ended.
OTHER_SPEC = "of another spec"


@dataclass(frozen=True, kw_only=True)
class FoundRun:
    """A run (or measurement) that a page names, as it was found on disk.

    `planned`: the configuration's run, if it has it; `other_spec`: what is there was made with another spec than that.
    """

    key: str
    state: str
    folder: Path
    log: Path
    outcome: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    planned: Run | None = None
    label: str = ""
    other_spec: bool = False

    @property
    def page(self) -> str:
        """The path of the run's page, from the report's folder."""
        return f"runs/{re.sub(r'[^A-Za-z0-9_.=+-]', '.', self.key)}.html"

    @property
    def without_seed(self) -> str:
        """The run's key without its seed: study, scale and method."""
        return self.key.rpartition("/")[0]

    @property
    def last(self) -> str:
        """The last part of the run's key: the seed, such as ``s42``."""
        return self.key.rpartition("/")[2]

    @property
    def run_id(self) -> str:
        """The id of the run that was found on disk, else of the planned one."""
        recorded_id = self.outcome.get("run_id") or self.manifest.get("run_id") or self.manifest.get("fingerprint")
        return str(recorded_id or (self.planned.spec.run_id if self.planned else ""))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCounts:
    """How many runs ended how (`states`, without those that no run is in), and how many of them are of another spec
    than the configuration's.
    """

    states: tuple[tuple[str, int], ...]
    other_spec: int

    @property
    def total(self) -> int:
        """How many runs there are, planned ones among them."""
        return sum(count for _, count in self.states)

    @property
    def has_any(self) -> bool:
        """Whether one of them was begun."""
        return any(state not in (NOT_RUN, MISSING) for state, _ in self.states)

    @classmethod
    def of(cls, runs: Iterable[FoundRun]) -> RunCounts:
        """Count runs by how they ended."""
        listed = list(runs)
        counts = Counter(run.state for run in listed)
        states = tuple((state, counts[state]) for state in STATES if counts[state])
        return cls(states=states, other_spec=sum(run.other_spec for run in listed))


@dataclass(frozen=True, kw_only=True)
class StudyProduct:
    """A product of a study: its name and kind, its file, and how many runs it needs."""

    study: str
    name: str
    kind: str
    path: Path
    runs: int

    @property
    def made(self) -> bool:
        """Whether the product is there: a table with the file that states where its cells come from, a figure with its
        svg.
        """
        companions = {"table": provenance.provenance_path(self.path), "figure": self.path.with_suffix(".svg")}
        return self.path.exists() and companions.get(self.kind, self.path).exists()


@dataclass(frozen=True, kw_only=True)
class ResultsOnDisk:
    """Finds what is there of a project's runs and products.

    Paths are from the project's root, where reports are made.
    """

    project: Project

    @cached_property
    def studies(self) -> dict[str, Study]:
        """The studies of the configuration by name, the main one first, among them a file of the user's own
        (`mine`).
        """
        main = self.project.config["main_study"]
        ordered = sorted(self.project.planned_studies, key=lambda study: study.name != main)
        return {study.name: study for study in ordered}

    @cached_property
    def packed(self) -> PackedBundle | None:
        """The bundle that this folder was rebuilt from; None if it is a project that trains its own runs."""
        return packed_bundle.read(self.project.root)

    def texts(self, study: str = "") -> dict[str, str]:
        """Name the source of each study's training texts, empty if they are the paper's own: of one study, else of
        all.
        """
        names = [study] if study in self.studies else self.studies
        return {name: self.studies[name].other_texts for name in names}

    @cached_property
    def _runs(self) -> dict[str, FoundRun]:
        ordered = {key: run for study in self.studies.values() for key, run in study.runs.items()}
        planned = {key: self.project.runs[key] for key in ordered if key in self.project.runs} | self.project.runs
        return {key: self._find_planned(run) for key, run in planned.items()}

    def run(self, key: str) -> FoundRun:
        """Find a run or measurement that a page names, planned or not; from then on it has its own page."""
        if key not in self._runs:
            planned = self.project.every_run.get(key)  # on request
            find = self._find_measurement if measurement_file.is_key(key) else self._find_unplanned
            self._runs[key] = self._find_planned(planned) if planned else find(key)
        return self._runs[key]

    def require_something(self) -> None:
        """Refuse to report on a preset of which there is nothing yet.

        Raises:
            PlumblineError: no run ended, and no product, audit, verdict or experiment is there.
        """
        paths = self.project.paths
        products = [product for study in self.studies.values() for product in self.products(study)]
        if any(product.made for product in products) or Path(paths.results, "audit.csv").exists():
            return
        if any(Path(paths.results).glob("*/*.md")) or any(run.state != NOT_RUN for run in self._runs.values()):
            return
        first = next(
            (product.path for product in products if product.kind == "table"), f"{paths.results}/STUDY/TABLE.csv"
        )
        raise PlumblineError(
            f"there is nothing to report at preset {self.project.name}: no run below {paths.work}, and no table, "
            f"figure, audit or verdict below {paths.results}; make some first, such as snakemake {first}, or "
            "name another preset (--preset) or folder of work (--config work=...)"
        )

    @property
    def runs(self) -> list[FoundRun]:
        """All runs that are planned, or were named by a page."""
        return list(self._runs.values())

    def of_study(self, study: Study) -> list[FoundRun]:
        """Find the runs of a study, those of the study that it extends among them."""
        return [self.run(key) for key in study.runs]

    def products(self, study: Study) -> list[StudyProduct]:
        """List a study's tables, figures, claims and interpretations in the study's order.

        A user's own file has none.
        """
        if study.name not in self.project.studies:
            return []
        folder = Path(self.project.paths.results) / study.name
        products = [
            StudyProduct(
                study=study.name,
                name=name,
                kind=entry["kind"],
                path=folder / f"{name}.{ENDINGS[entry['kind']]}",
                runs=len(study.group(*entry["runs"])),
            )
            for name, entry in study.definition["targets"].items()
            if name in study.usual_targets or (folder / f"{name}.{ENDINGS[entry['kind']]}").exists()
        ]
        more = {"interpretations": folder / "interpretations.md"}
        if self.project.targets.has_claims(study.name):
            more = {"claims": folder / "claims.csv"} | more
        claimed = len(study.group(*study.claimed_groups))
        products += [
            StudyProduct(study=study.name, name=name, kind=name, path=path, runs=claimed if name == "claims" else 0)
            for name, path in more.items()
        ]
        return products

    def command(self, *targets: str | Path, studies: str = "") -> str:
        """Spell the command that makes missing targets, for a reader to paste.

        `studies`: the names of the only studies that the command is to configure.
        """
        only = f" 'studies=[{studies}]'" if studies else ""
        source = self.project.config["data"]["source"]
        texts = f" 'data={{source: {source}}}'" if source != AS_THE_CORPUS_SAYS else ""  # else it made other runs
        return f"snakemake {' '.join(map(str, targets))} --config preset={self.project.name}{only}{texts}"

    def _find_planned(self, run: Run) -> FoundRun:
        run_on_disk, owner = self._find_unplanned(run.key), self.studies.get(run.spec.study)
        label = owner.label(run.spec.method) if owner else run.spec.method
        if not run_on_disk.outcome:
            state = UNFINISHED if run_on_disk.log.exists() else NOT_RUN
            return replace(run_on_disk, state=state, planned=run, label=label)
        # What was packed is of the code that made the bundle, and so are its ids: it is what is expected there.
        expected = run_on_disk.manifest.get("run_id") if self.packed else run.spec.run_id
        return replace(run_on_disk, planned=run, label=label, other_spec=run_on_disk.outcome.get("run_id") != expected)

    def _find_unplanned(self, key: str) -> FoundRun:
        """A run that a table or claim names and the configuration does not."""
        folder = Path(self.project.paths.work) / "runs" / key
        outcome, manifest = (fingerprint_file.read(folder / f"{name}.json") or {} for name in ("outcome", "manifest"))
        state = str(outcome.get("outcome", MISSING))
        return FoundRun(
            key=key, state=state, folder=folder, log=self._log(key), outcome=outcome, manifest=manifest, label=key
        )

    def _find_measurement(self, key: str) -> FoundRun:
        frame = measurement_file.frame_path(Path(self.project.paths.work), key)
        facts = fingerprint_file.read(measurement_file.facts_path(frame)) or {}
        state = MEASURED if facts and frame.exists() else MISSING
        log = Path(self.project.paths.logs) / "measure" / f"{key.partition('/')[2].replace('/', '.')}.log"
        return FoundRun(key=key, state=state, folder=frame, log=log, manifest=facts, label=key)

    def _log(self, key: str) -> Path:
        return Path(self.project.paths.logs) / "pretrain" / f"{key.replace('/', '.')}.log"
