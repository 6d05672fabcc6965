"""The measurements of a configuration: where they are, and what they are made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import study_config
from plumbline.specs.measurement import Measurement
from plumbline.specs.measurement_code import of_measurement

if TYPE_CHECKING:
    from plumbline.specs.study_config import Study


class Measurements:
    """The part of a `plumbline.project.project.Plan` that knows what is measured beside the runs. Paths are the plan's.

    A study that extends another one has the other one's measurements.
    """

    config: dict[str, Any]
    studies: dict[str, Study]
    root: Path
    name: str
    work: str

    def measured_file(self, one: Measurement, ending: str = "parquet") -> str:
        """The frame of a measurement, or the file beside it that says what it was made with (`json`)."""
        return f"{self.work}/{one.key}.{ending}"

    @property
    def measurements(self) -> dict[str, Measurement]:
        """All measurements of this preset by key, ``measured/study/name``."""
        return {one.key: one for study in self.studies.values() for one in study.measurements.values()}

    def measurement(self, study: str, name: str) -> Measurement:
        """The measurement that a rule's wildcards name.

        Raises:
            PlumblineError: no study of the configuration has it.
        """
        known = self.measurements
        key = f"measured/{study}/{name}"
        if key not in known:
            raise PlumblineError(
                f"there is no {key} at preset {self.name}{nearest(key, known)}; what is measured is in "
                f"config/studies/{study}/study.yaml: measurements"
            )
        return known[key]

    def target_measurements(self, study: str, target: str | None = None) -> dict[str, Measurement]:
        """What a target reads of the measurements of this preset, or what all targets of a study read. (A file of one's
        own has no targets.)"""
        if study not in self.studies:
            return {}
        whole = self.studies[study]
        entries = whole.sheet["targets"].values() if target is None else [whole.sheet["targets"][target]]
        names = {name for entry in entries for name in entry.get("measurements", ())}
        return {name: one for name, one in whole.measurements.items() if name in names}

    def measured_files(self, study: str, target: str) -> list[str]:
        """The files of the measurements that a target reads."""
        read = self.target_measurements(study, target).values()
        return [self.measured_file(one, ending) for one in read for ending in ("parquet", "json")]

    def measurement_made_of(self, one: Measurement) -> str:
        """Changes when a measurement has to be made anew."""
        owner = self.studies.get(one.study) or study_config.load(one.study, self.name, self.root)
        return of_measurement(owner, one.name)

    def refuse_measurement(self, path: str) -> list[str]:
        """Answer a path of a measurement that is not there with the nearest one.

        Raises:
            PlumblineError: always, naming both.
        """
        study, name, *_ = [*path.split("/")[1:], ""]
        self.measurement(study, name.partition(".")[0])
        raise PlumblineError(f"nothing makes {self.work}/{path}")

    def unknown_measurement(self) -> str:
        """A pattern of the paths below work/<preset>/ that are of no measurement."""
        known = "|".join(sorted(re.escape(key.partition("/")[2]) for key in self.measurements)) or "(?!)"
        return rf"measured/(?!(?:{known})\.(?:parquet|json)$).+"
