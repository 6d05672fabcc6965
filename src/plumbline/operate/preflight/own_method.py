"""Checks a user's own method (`--config mine=...`) before the first job that trains anything for it.

The checks are no rule: what a failing one has to stop are also the runs of the reference, which are jobs of another
study and must not wait for a user's own file. They import torch and the component's code, so they are made by a process
of their own, once for each state of both (`checks.json` says of which).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from plumbline.operate.preflight.dry_run import DryRun
from plumbline.operate.preflight.method_checks import checks_report
from plumbline.project import Project
from plumbline.specs.checked_models import fingerprint_checks
from plumbline.specs.own_methods_file import OwnMethodsFile


def refused(dry_run: DryRun) -> list[str]:
    """Check the user's own method, or read what was found for this state of the code.

    Returns a sentence for each check that fails. Nothing is checked where neither the page nor a run of the file's own
    methods is among the jobs.
    """
    plan = dry_run.project
    if plan.mine is None or not _asked(dry_run):
        return []
    return checked(plan, plan.mine, Path(plan.paths.verdict_checks))


def checked(plan: Project, mine: OwnMethodsFile, path: Path) -> list[str]:
    """Check methods of a user's own, or read what was found for this state of the code.

    Returns a sentence for each check that fails. `path`: the file of what is found.
    """
    fingerprint = fingerprint_checks(mine)
    if checks_report.kept(path, fingerprint) is None:
        asked = [mine.path] if mine.experiment is None else ["--experiment", json.dumps(mine.experiment)]
        command = [sys.executable, "-m", "plumbline.operate.preflight.own_checks", *asked, "--preset", plan.name]
        command += ["--documents-source", plan.config["data"]["source"], "--out", str(path)]
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=one_thread)
        if checks_report.kept(path, fingerprint) is None:
            if done.returncode == 0:
                return [
                    f"{mine.path}: it, or a component's code, was edited while it was checked; run the command again"
                ]
            return [f"{mine.path}: it could not be checked: {done.stderr.strip()[-2000:]}"]
    found = checks_report.kept(path, fingerprint)
    failing = checks_report.sentences(found, mine.path, "failed") if found is not None else []
    return [*failing, "nothing was trained; fix the component and run the command again"] if failing else []


def flagged(dry_run: DryRun) -> list[str]:
    """Report what is no reason to stop: a method that is larger or smaller than what it is compared with."""
    plan = dry_run.project
    if plan.mine is None or not _asked(dry_run):
        return []
    found = checks_report.kept(Path(plan.paths.verdict_checks), plan.fingerprints.checks())
    return [] if found is None else checks_report.sentences(found, plan.mine.path, "flagged")


def _asked(dry_run: DryRun) -> bool:
    assert dry_run.project.mine is not None
    name = dry_run.project.mine.name
    return bool(dry_run.of("verdict")) or any(job.wildcards.get("study") == name for job in dry_run.of("pretrain"))
