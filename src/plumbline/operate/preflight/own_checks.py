"""Checks the methods of a user's own file before any is trained: ``python -m plumbline.operate.preflight.own_checks
my/cosine.yaml``.

Its models, and what trains them, are tried small and on the CPU, in seconds. What does not hold ends with 1: nothing is
trained then. Parity is only flagged.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from plumbline.core.allocator import keep_memory
from plumbline.core.command_line import described, prog, run
from plumbline.core.files import atomic_write_json
from plumbline.operate.preflight import own_training
from plumbline.operate.preflight.method_checks import checks_report
from plumbline.specs import corpus, study_config
from plumbline.specs.checked_models import of_experiment
from plumbline.specs.own_methods_file import OwnMethodsFile, load
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import PRESETS


def train_a_little(mine: OwnMethodsFile, method: str, small: RunSpec, baseline: RunSpec, entry: dict[str, Any]) -> None:
    """Try what trains a method, and add what does not hold to its `entry`."""
    whole = {run.spec.scale: run.spec for run in mine.study.runs.values() if run.spec.method == method}
    try:
        found = own_training.failed(small, baseline)
        for scale, spec in whole.items():
            if words := own_training.schedule(spec):
                found[f"schedule at {scale}"] = words
    except Exception as error:
        entry["raised"].append("training")
        found = {"training": own_training.raised(error)}
    entry["failed"] |= found


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `python -m plumbline.operate.preflight.own_checks`."""
    parser = argparse.ArgumentParser(
        prog=prog("python -m plumbline.operate.preflight.own_checks"), description=described(__doc__)
    )
    parser.add_argument("mine", nargs="?", metavar="FILE.yaml", help="your file that says `extends:`")
    parser.add_argument("--experiment", type=json.loads, metavar="JSON", help=argparse.SUPPRESS)
    parser.add_argument("--preset", choices=PRESETS, default="demo")
    parser.add_argument("--documents-source", default=corpus.AS_THE_CORPUS_SAYS, help="where documents come from")
    parser.add_argument(
        "--out", type=Path, metavar="CHECKS.json", help="also write the results there, if every check could be run"
    )
    return parser


def main() -> None:
    """Check a user's own file, print what is flagged, and write the report that ``--out`` asks for."""
    given = arguments().parse_args()
    keep_memory()  # large tensors are made and dropped by the hundred
    if given.experiment is not None:
        study = study_config.load(given.experiment["study"], given.preset, source=given.documents_source)
        mine = of_experiment(given.experiment, study, source=given.documents_source)
        assert mine is not None, "whoever asks has looked"
    else:
        mine = load(given.mine, given.preset, source=given.documents_source)
    found = checks_report.report(mine, train_a_little)
    found["checks"] += own_training.CHECKS
    if given.out is not None and checks_report.to_keep(found):
        atomic_write_json(given.out, found)
    for words in checks_report.sentences(found, mine.path, "flagged"):
        print(f"flagged: {words}")
    checks_report.require(found, mine.path)
    print(f"{', '.join(found['methods'])}: {', '.join(found['checks'])} hold")


if __name__ == "__main__":
    run(main)
