"""Checks the methods of a user's own file before any is trained: ``python -m
plumbline.operate.preflight.method_checks.check_file my/cosine.yaml``.

Its models, and what trains them, are tried small and on the CPU, in seconds. What does not hold ends with 1: nothing is
trained then. Parity is only flagged.
"""

# The checks are also made before the first job that trains anything for `--config mine=...`. They are no rule: what a
# failing one has to stop are also the runs of the reference, which are jobs of another study and must not wait for a
# user's own file. They import torch and the component's code, so they are made by a process of their own, once for each
# state of both (`checks.json` says of which).

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from plumbline.core.command_line import Parser, run
from plumbline.core.files import atomic_write_json
from plumbline.operate.preflight.dry_run import DryRun
from plumbline.operate.preflight.method_checks import checks_report
from plumbline.project import Project
from plumbline.specs import corpus, study_config
from plumbline.specs.checked_models import fingerprint_checks, make_own_methods_file
from plumbline.specs.own_methods_file import OwnMethodsFile, load
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import PRESETS


def list_refusals(dry_run: DryRun) -> list[str]:
    """Check the user's own method, or read what was found for this state of the code.

    Returns a sentence for each check that fails. Nothing is checked where neither the page nor a run of the file's own
    methods is among the jobs.
    """
    plan, mine = dry_run.project, _file_in_use(dry_run)
    return [] if mine is None else check_methods(plan, mine, Path(plan.paths.verdict_checks))


def check_methods(plan: Project, mine: OwnMethodsFile, path: Path) -> list[str]:
    """Check methods of a user's own, or read what was found for this state of the code.

    Returns a sentence for each check that fails. `path`: the file of what is found.
    """
    fingerprint = fingerprint_checks(mine)
    report = checks_report.read_report(path, fingerprint)
    if report is None:
        arguments = [mine.path] if mine.experiment is None else ["--experiment", json.dumps(mine.experiment)]
        command = [sys.executable, "-m", "plumbline.operate.preflight.method_checks.check_file", *arguments]
        command += ["--preset", plan.name, "--documents-source", plan.config["data"]["source"], "--out", str(path)]
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.run(command, capture_output=True, text=True, env=one_thread)
        report = checks_report.read_report(path, fingerprint)
        if report is None and process.returncode == 0:
            return [f"{mine.path}: it, or a component's code, was edited while it was checked; run the command again"]
        if report is None:
            return [f"{mine.path}: it could not be checked: {process.stderr.strip()[-2000:]}"]
    return checks_report.list_refusals(report, mine.path)


def list_warnings(dry_run: DryRun) -> list[str]:
    """Report what is not a reason to stop: a method that is larger or smaller than what it is compared with."""
    plan, mine = dry_run.project, _file_in_use(dry_run)
    if mine is None:
        return []
    report = checks_report.read_report(Path(plan.paths.verdict_checks), plan.fingerprints.checks())
    return [] if report is None else checks_report.list_sentences(report, mine.path, "flagged")


def _file_in_use(dry_run: DryRun) -> OwnMethodsFile | None:
    """The user's own file, where its page, or a run of its own methods, is among the jobs."""
    mine = dry_run.project.mine
    studies = {job.wildcards.get("study") for job in dry_run.of("pretrain")}
    return mine if mine is not None and (dry_run.of("verdict") or mine.name in studies) else None


def train_a_little(mine: OwnMethodsFile, method: str, small: RunSpec, baseline: RunSpec, entry: dict[str, Any]) -> None:
    """Try what trains a method, and add what does not hold to its `entry`."""
    from plumbline.operate.preflight.method_checks import training_checks

    specs = {run.spec.scale: run.spec for run in mine.study.runs.values() if run.spec.method == method}
    try:
        failures = training_checks.run_checks(small, baseline)
        for scale, spec in specs.items():
            if message := training_checks.check_schedule(spec):
                failures[f"schedule at {scale}"] = message
    except Exception as error:
        entry["raised"].append("training")
        failures = {"training": training_checks.describe_error(error)}
    entry["failed"] |= failures


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.operate.preflight.method_checks.check_file`."""
    parser = Parser(__doc__)
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
    from plumbline.model.allocator import keep_memory
    from plumbline.operate.preflight.method_checks import training_checks

    options = arguments().parse_args()
    keep_memory()  # large tensors are made and dropped by the hundred
    if options.experiment is not None:
        study = study_config.load(options.experiment["study"], options.preset, source=options.documents_source)
        mine = make_own_methods_file(options.experiment, study, source=options.documents_source)
        assert mine is not None, "whoever asks has looked"
    else:
        mine = load(options.mine, options.preset, source=options.documents_source)
    report = checks_report.make_report(mine, train_a_little)
    report["checks"] += training_checks.CHECKS
    if options.out is not None and checks_report.can_be_kept(report):
        atomic_write_json(options.out, report)
    for sentence in checks_report.list_sentences(report, mine.path, "flagged"):
        print(f"flagged: {sentence}")
    checks_report.require_no_failure(report, mine.path)
    print(f"{', '.join(report['methods'])}: {', '.join(report['checks'])} hold")


if __name__ == "__main__":
    run(main)
