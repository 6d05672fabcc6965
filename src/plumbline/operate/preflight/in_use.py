"""Checks whether another Snakemake holds this directory, or another trainer a run that is to be trained."""

from __future__ import annotations

from pathlib import Path

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError
from plumbline.operate.locks import workflow_lock
from plumbline.operate.preflight.check_result import NOTE, OK, STOP, CheckResult
from plumbline.operate.preflight.dry_run import DryRun
from plumbline.train.checkpoint import state_records


def check(directory: Path) -> list[CheckResult]:
    """Check whether a Snakemake that is started in this directory now would be let in; changes nothing."""
    try:
        dead_lock = workflow_lock.describe_dead_lock(directory)
    except PlumblineError as held:
        return [CheckResult(state=STOP, subject="directory", message=str(held))]
    message = f"{dead_lock}; the next start clears that" if dead_lock else "no other Snakemake holds it"
    return [CheckResult(state=OK, subject="directory", message=message)]


def list_trainers(dry_run: DryRun) -> list[CheckResult]:
    """Find runs that somebody is training already; a second trainer would wait for the first one's lock."""
    results = []
    for run in dry_run.runs():
        state = Path(dry_run.project.paths.work) / "state" / run.key
        holder = state_records.read_holder(state)
        if holder and process_record.is_here(holder) and not process_record.has_ended(holder):
            message = f"{run.key} is being trained by {state_records.describe_holder(state)}; "
            message += "a second trainer waits, and gives up"
            results.append(CheckResult(state=NOTE, subject="trainers", message=message))
    return results
