"""Answers a request for a path that nothing makes with the nearest path that something does."""

from __future__ import annotations

import re
from functools import cached_property

from plumbline.core.errors import PlumblineError, nearest
from plumbline.data.pinned_packages import PINS
from plumbline.project.bundle_products import FILES
from plumbline.project.configuration import Configuration
from plumbline.project.paths import REPORT_INDEX, RESULTS, WorkflowPaths
from plumbline.project.planned_measurements import PlannedMeasurements
from plumbline.project.study_targets import StudyTargets
from plumbline.project.verdict_pages import VerdictPages
from plumbline.specs.yaml_files import PRESETS


class UnknownPaths:
    """Matches paths that nothing makes, and raises the errors for them."""

    def __init__(
        self,
        configuration: Configuration,
        paths: WorkflowPaths,
        targets: StudyTargets,
        measurements: PlannedMeasurements,
        verdicts: VerdictPages,
    ) -> None:
        self.configuration, self.paths, self.targets = configuration, paths, targets
        self.measurements, self.verdicts = measurements, verdicts

    def refuse(self, path: str) -> list[str]:
        """Refuse a path below results/ that nothing makes, and name the nearest one that something does.

        Raises:
            PlumblineError: always, naming both.
        """
        first, *rest = path.split("/")[1:]
        if first in PRESETS and first != self.configuration.name:
            raise PlumblineError(
                f"{path} belongs to another preset than {self.configuration.name}: add --config preset={first}"
            )
        parts = rest if first == self.configuration.name else [first, *rest]
        self.configuration.require_whole(parts[0] if parts[1:] else self.configuration.config["main_study"])
        self.verdicts.refuse(path)
        if parts[0] in self.configuration.studies and parts[-1] in ("claims.csv", "claims.md"):
            self.targets.claims_files(parts[0])  # knows why there are none
        raise PlumblineError(self.nothing_makes(path))

    def nothing_makes(self, path: str) -> str:
        """Write that nothing makes a path, and name the nearest one that something does."""
        close = nearest(path, ["all", *sorted(self._makes)]) or ";"
        return (
            f"nothing makes {path} at preset {self.configuration.name}{close} `plumbline ls targets` lists tables and "
            "figures, and `all` is everything"
        )

    def refuse_below_work(self, path: str) -> list[str]:
        """Refuse a path of a run or measurement that no study has, of a corpus that none reads, or of a package that is
        not pinned, and name the nearest one.

        Raises:
            PlumblineError: always, naming both.
        """
        kind, name, *_ = path.split("/")
        if kind == "packages":
            raise PlumblineError(
                f"no pinned package is kept as {name}{nearest(name, self._packages)} (there are {self._packages})"
            )
        if kind == "corpora":
            names = sorted(self.configuration.corpora)
            raise PlumblineError(
                f"no study here reads a corpus {name!r}{nearest(name, names)} (they read {names}); a corpus is a file "
                "of config/corpora that a study.yaml names"
            )
        self.configuration.require_whole(name)
        if path.startswith("measured/"):
            return self.measurements.refuse(path)
        study, scale, method, seed, *_ = [*path.split("/")[1:], *[""] * 4]
        self.configuration.run(study, scale, method, seed.removeprefix("s"))
        raise PlumblineError(f"nothing makes {self.paths.work}/{path}")

    def below_work(self) -> str:
        """Make a regular expression of the paths below work/<preset>/ that are of no run, measurement, corpus or
        package.
        """
        runs, scored = (
            "|".join(sorted({re.escape(key.rpartition("/")[0]) for key in keys})) or "(?!)"
            for keys in (self.configuration.every_run, self.configuration.scored_runs)
        )
        of_runs = rf"(?:runs|probes)/(?!(?:{runs})/s\d+/).+|scores/(?!(?:{scored})/s\d+/).+"
        packages, corpora = (
            "|".join(map(re.escape, names)) or "(?!)" for names in (self._packages, sorted(self.configuration.corpora))
        )
        of_data = rf"packages/(?!(?:{packages})$)[^/]+|corpora/(?!(?:{corpora})/).+"
        return rf"{of_runs}|{of_data}|{self.measurements.make_unknown_pattern()}"

    def results(self) -> str:
        """Make a regular expression of the paths below results/ that nothing makes."""
        known_paths = "|".join(re.escape(path.removeprefix(f"{RESULTS}/")) for path in sorted(self._makes))
        return rf"(?!(?:{known_paths})$).+"

    @property
    def _packages(self) -> list[str]:
        """The file names of the pinned packages."""
        return sorted(f"{name}{pin.suffix}" for name, pin in PINS.items())

    @cached_property
    def _makes(self) -> set[str]:
        endings = {"table": FILES["table"], "figure": (".png", ".svg", ".csv")}
        copies = {
            f"{name}{end}" for kind, ends in endings.items() for name in self.targets.copies(kind) for end in ends
        }
        copies |= {f"{name}{end}" for name in self.targets.copies("page") for end in (".csv", ".md")}
        pages = {f"{study}/interpretations.md" for study in self.configuration.studies}
        copies |= {*self.verdicts.pages, REPORT_INDEX}
        product_names = {name for name in copies if "/" in name or name.partition(".")[0] in ("audit", "plan")} | pages
        products = {f"{self.paths.results}/{name}" for name in product_names} | {self.paths.bundle}
        return {f"{RESULTS}/{name}" for name in copies} | products
