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
        left = workflow_lock.left_behind(directory)
    except PlumblineError as held:
        return [CheckResult(state=STOP, what="directory", words=str(held))]
    words = f"{left}; the next start clears that" if left else "no other Snakemake holds it"
    return [CheckResult(state=OK, what="directory", words=words)]


def trainers(dry_run: DryRun) -> list[CheckResult]:
    """Find runs that somebody is training already; a second trainer would wait for the first one's lock."""
    found = []
    for run in dry_run.runs():
        state = Path(dry_run.project.paths.work) / "state" / run.key
        holder = state_records.read_holder(state)
        if holder and process_record.is_here(holder) and not process_record.has_ended(holder):
            words = f"{run.key} is being trained by {state_records.describe_holder(state)}; "
            words += "a second trainer waits, and gives up"
            found.append(CheckResult(state=NOTE, what="trainers", words=words))
    return found
