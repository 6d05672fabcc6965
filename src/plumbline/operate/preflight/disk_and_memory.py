"""Checks that `work` has disk space for what runs and corpora take by the plan, and this machine memory for a job."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

from plumbline.core.formats import format_bytes
from plumbline.core.permissions import find_nearest
from plumbline.operate import cleanup
from plumbline.operate.console.rule_names import STAGES
from plumbline.operate.preflight.check_result import NOTE, OK, STOP, CheckResult
from plumbline.operate.preflight.dry_run import DryRun
from plumbline.plan import data_stage
from plumbline.plan.run_estimate import estimator

#: Rules that make a corpus.
CORPUS = tuple(rule for rule, stage in STAGES.items() if stage == "corpus")


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check the disk, and the memory where jobs are run on this machine."""
    return [check_disk(dry_run), *([] if dry_run.runs_on_other_machines else check_memory(dry_run))]


def check_disk(dry_run: DryRun) -> CheckResult:
    """Check that `work` can be written, and has space for the files of the jobs that are to do."""
    plan = dry_run.project
    where, folder = f"work: {plan.config['work']}", find_nearest(plan.paths.work)
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"config/config.yaml: {where}: {folder} cannot be written; name another folder: --config work=..."
        return CheckResult(state=STOP, subject="disk", message=message)
    corpora = sorted({job.wildcards["corpus"] for job in dry_run.of(*CORPUS)})
    unknown = [name for name in corpora if data_stage.tokens(plan, name) is None]
    runs = dry_run.runs()
    takes = sum(map(estimator(plan, root=plan.root).disk_bytes, runs))
    takes += sum(data_stage.corpus_bytes(plan, name) for name in corpora)
    folders = [Path(plan.paths.corpus(name)) for name in corpora]
    folders += [Path(plan.paths.work) / part / run.key for run in runs for part in ("state", "runs")]
    takes = max(0.0, takes - sum(_count_bytes(place) for place in folders))
    free = shutil.disk_usage(folder).free
    message = f"{where}: about {format_bytes(takes)} to write, {format_bytes(free)} free"
    if unknown:
        message += f" (not counted: {', '.join(unknown)})"
    if takes <= free:
        return CheckResult(state=OK, subject="disk", message=f"{message}; quotas are not checked")
    leftovers = cleanup.list_leftovers(Path(plan.config["work"]))
    spare = sum(entry.bytes for entry in leftovers if entry.kind != "fetched")  # which may be what is to be written
    remedy = "name a folder on a larger disk: --config work=/scratch/..."
    if spare:
        remedy += f"; {format_bytes(spare)} are leftovers: plumbline cleanup"
    return CheckResult(state=STOP, subject="disk", message=f"{message}; {remedy}")


def check_memory(dry_run: DryRun) -> list[CheckResult]:
    """Check that this machine has the memory that the largest job asks for, as its rule states it."""
    largest = max(dry_run.jobs, key=lambda job: job.memory, default=None)
    if largest is None or not largest.memory:
        return []
    memory = psutil.virtual_memory()
    total, free = memory.total / 1e6, memory.available / 1e6
    message = (
        f"the largest job ({largest.rule}) asks for {format_bytes(largest.memory * 1e6)} of "
        f"{format_bytes(memory.total)}"
    )
    if largest.memory > total:
        remedy = "use a machine with more, or a smaller preset"
        return [CheckResult(state=STOP, subject="memory", message=f"{message}, all of it; {remedy}")]
    at_once = dry_run.memory_limit
    if at_once is not None and at_once > free:
        message += (
            f"; jobs may ask for {format_bytes(1e6 * at_once)} together, {format_bytes(1e6 * free)} are free now: "
            f"--resources mem_mb={int(free)}"
        )
        return [CheckResult(state=NOTE, subject="memory", message=message)]
    return [CheckResult(state=OK, subject="memory", message=message)]


def _count_bytes(folder: Path) -> int:
    """What lies in a folder; files that vanish meanwhile count as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_size
            except OSError:
                continue
    return total
