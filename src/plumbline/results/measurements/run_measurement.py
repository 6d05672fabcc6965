"""Makes a measurement that a target needs: ``python -m plumbline.results.measurements.run_measurement STUDY NAME``.

A measurement is a function of its own name in ``studies/<study>/measurements/<name>.py``, called with the
study, its options of the preset, and a function for lines of progress; it returns a frame. Of the study's runs it sees
those of the groups that its entry in study.yaml names under ``runs``, so that its inputs are known.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.core import numeric_environment, provenance
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, nearest
from plumbline.results.measurements import measurement_file
from plumbline.specs import study_config, study_parts
from plumbline.specs.measurement import Measurement
from plumbline.specs.measurement_code import hash_measurement, measurement_code
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import PRESETS


def find_measurement(study: Study, name: str) -> Measurement:
    """Look up a measurement of a study by its name.

    Raises:
        PlumblineError: the study has none of this name under its preset.
    """
    measurements = study.measurements
    if name not in measurements:
        raise PlumblineError(
            f"{study.file}: measurements: no {name!r} at preset {study.preset}"
            f"{nearest(name, measurements)} (there are {list(measurements)})"
        )
    return measurements[name]


def measure(study: Study, name: str, out: Path, report: Callable[[str], None]) -> None:
    """Call a measurement's function, and write its frame and what it was made with.

    Args:
        out: the frame's file.
        report: called with each line of progress.

    Raises:
        PlumblineError: there is no such measurement, or it returns no frame that can be stored.
    """
    measurement = find_measurement(study, name)
    function = study_parts.function(measurement.study, "measurements", name, study.root)
    restricted_study = dataclasses.replace(study, runs={each.key: each for each in study.group(*measurement.runs)})
    numeric_environment.require_wide_products()  # before the function imports torch
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    frame = function(restricted_study, dict(measurement.options), report)
    seconds = time.perf_counter() - clock
    if not isinstance(frame, pd.DataFrame):
        raise PlumblineError(
            f"{study_parts.file(measurement.study, 'measurements', name, study.root)}: {name} must return a frame; it "
            f"returned {frame!r}"
        )
    facts: dict[str, Any] = {
        "study": measurement.study,
        "measurement": name,
        "preset": study.preset,
        "options": measurement.options,
    }
    facts |= {"fingerprint": hash_measurement(study, name), "code": measurement_code(measurement, study.root)}
    facts |= {"started": started, "seconds": round(seconds, 3)}
    facts |= provenance.describe_code() | {
        "packages": provenance.list_packages(),
        "lock_sha256": provenance.lock_sha256(),
    }
    measurement_file.write(frame, out, facts | _describe_machine())


def _describe_machine() -> dict[str, Any]:
    """Return host and device as in a run's manifest; a function that never loaded torch ran on the processor."""
    torch = sys.modules.get("torch")
    if torch is not None:
        from plumbline.model.numerics import float32_error, require_float32

        device = torch.device("cuda" if torch.cuda.is_initialized() else "cpu")
        require_float32(device)
        return provenance.describe_machine(device, float32_error(device))
    processor = platform.processor() or platform.machine()
    return {"host": socket.gethostname(), "device": "cpu", "device_name": processor}


def main() -> None:
    """Make the measurement that the command line names, and print its file."""
    parser = Parser(__doc__)
    parser.add_argument("study")
    parser.add_argument("name", help="an entry of `measurements` in studies/STUDY/study.yaml")
    parser.add_argument("--preset", choices=PRESETS, default="demo")
    parser.add_argument("--out", type=Path, required=True, metavar="FRAME.parquet")
    options = parser.parse_args()
    study = study_config.load(options.study, options.preset)
    if find_measurement(study, options.name).device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # one that is here may be another job's
    measure(study, options.name, options.out, lambda line: print(f"{options.study}/{options.name}: {line}", flush=True))
    print(options.out)


if __name__ == "__main__":
    run(main)
