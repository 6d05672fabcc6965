"""Finds what a configuration measures apart from its runs."""

from __future__ import annotations

import re

from plumbline.core.errors import PlumblineError, nearest
from plumbline.project.configuration import Configuration
from plumbline.project.paths import WorkflowPaths
from plumbline.specs import study_folders
from plumbline.specs.measurement import Measurement


class PlannedMeasurements:
    """The measurements of a configuration. A study that extends another one has that one's measurements."""

    def __init__(self, configuration: Configuration, paths: WorkflowPaths) -> None:
        self.configuration, self.paths = configuration, paths

    @property
    def all(self) -> dict[str, Measurement]:
        """All measurements of this preset by key, ``measured/study/name``."""
        return {item.key: item for study in self.configuration.studies.values() for item in study.measurements.values()}

    def one(self, study: str, name: str) -> Measurement:
        """Look up the measurement that a rule's wildcards name.

        Raises:
            PlumblineError: no study of the configuration has it.
        """
        planned = self.all
        key = f"measured/{study}/{name}"
        if key not in planned:
            raise PlumblineError(
                f"there is no {key} at preset {self.configuration.name}{nearest(key, planned)}; what is measured is in "
                f"{study_folders.yaml_of(study, self.configuration.root)}: measurements"
            )
        return planned[key]

    def of_target(self, study: str, target: str | None = None) -> dict[str, Measurement]:
        """Find the measurements, by name, that a target reads at this preset.

        Without a target they are those that all targets of the study read. A user's own file has no targets, and none
        are found for it.
        """
        if study not in self.configuration.studies:
            return {}
        config = self.configuration.studies[study]
        entries = config.definition["targets"].values() if target is None else [config.definition["targets"][target]]
        names = {name for entry in entries for name in entry.get("measurements", ())}
        return {name: measurement for name, measurement in config.measurements.items() if name in names}

    def files(self, study: str, target: str) -> list[str]:
        """List the files of the measurements that a target reads."""
        measurements = self.of_target(study, target).values()
        return [self.paths.measurement(each, ending) for each in measurements for ending in ("parquet", "json")]

    def refuse(self, path: str) -> list[str]:
        """Refuse a path of a measurement that is not there, and name the nearest one.

        Raises:
            PlumblineError: always, naming both.
        """
        study, name, *_ = [*path.split("/")[1:], ""]
        self.one(study, name.partition(".")[0])
        raise PlumblineError(f"nothing makes {self.paths.work}/{path}")

    def make_unknown_pattern(self) -> str:
        """Make a regular expression of the paths below work/<preset>/measured/ that are of no measurement."""
        pattern = "|".join(sorted(re.escape(key.partition("/")[2]) for key in self.all)) or "(?!)"
        return rf"measured/(?!(?:{pattern})\.(?:parquet|json)$).+"
