"""Fingerprints what a study measures in addition to its runs: code, options, and specs of runs that it names."""

from __future__ import annotations

from pathlib import Path

from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import code_hash, study_parts
from plumbline.specs.measurement import Measurement
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import ROOT


def hash_measurement(study: Study, name: str) -> str:
    """The fingerprint of a measurement: it changes with its code and what that imports, its options, and the specs of
    the runs that it names (all of them but the data and the suite, which it does not read), and with nothing else."""
    measurement = study.measurements[name]
    specs = [run.spec.to_dict() for run in study.group(*measurement.runs)]
    parts = [{key: value for key, value in spec.items() if key not in ("data", "suite")} for spec in specs]
    return sha256_text(canonical_json([measurement_code(measurement, study.root), measurement.options, parts]))[:16]


def measurement_code(measurement: Measurement, root: Path = ROOT) -> str:
    """Hash of the code of a measurement: its module and what that imports, except for what only reads configuration."""
    file = study_parts.file(measurement.study, "measurements", measurement.name, root)
    return code_hash.tree_hash(code_hash.measurement_files(file))
