"""Asks SLURM, before the first job, whether it would accept every kind of job that is to do.

Nothing is submitted: the longest job of each kind goes to `sbatch --test-only`, with the limits that Snakemake would
give it. That finds wrong account and partition names, time limits above a partition's, and nodes that are too small,
all of which would otherwise show as failed jobs, or as jobs that wait for ever. The settings of the cluster that the
executor plugin depends on are checked as well.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.core.errors import nearest
from plumbline.operate.preflight.check_result import NOTE, OK, STOP, UNKNOWN, CheckResult, State, at_once
from plumbline.operate.preflight.dry_run import DryRun, JobToRun

#: sbatch's options, and what the profile calls what they say.
OPTIONS = {
    "--account": "slurm_account",
    "--partition": "slurm_partition",
    "--time": "runtime",
    "--mem": "mem_mb",
    "--nodes": "nodes",
    "--gres": "gres",
    "--gpus": "gpu",
    "--constraint": "constraint",
    "--qos": "qos",
    "--cpus-per-task": "threads",
}
#: Seconds that SLURM must remember an ended job: the executor polls at most every 180 s.
MIN_JOB_AGE = 200
#: The account that profiles/slurm names until a site puts its own there, of which few sites will know; what to do.
PLACEHOLDER = "plumbline"
PLACEHOLDER_MESSAGE = (
    f"profiles/slurm/config.v9+.yaml: default-resources.slurm_account: {PLACEHOLDER!r} is a placeholder; put your "
    "account and partitions into an overlay (docs/on-your-cluster.md, step 2): sacctmgr show associations user=$USER"
)


def group_jobs(jobs: Iterable[JobToRun]) -> dict[str, list[JobToRun]]:
    """Group the jobs that go to SLURM by rule and by the resources they ask for, without the time.

    Each group's longest job comes first.
    """
    groups: dict[tuple[Any, ...], list[JobToRun]] = defaultdict(list)
    for job in jobs:
        if job.resources:
            groups[job.rule, *(job.resources.get(name) for name in OPTIONS.values() if name != "runtime")].append(job)
    named_groups: dict[str, list[JobToRun]] = {}
    for (rule, *_), group in groups.items():
        group.sort(key=lambda job: _minutes(job.resources), reverse=True)
        resources = group[0].resources
        devices = f" {resources['nodes']} x" if resources.get("nodes") else ""
        name = f"{rule}{devices} {resources.get('gres', '')}".strip()
        named_groups[f"{name} ({len(named_groups) + 1})" if name in named_groups else name] = group
    return named_groups


def _minutes(resources: dict[str, Any]) -> int:
    return int(resources.get("runtime") or 0)


def spell_command(resources: dict[str, Any]) -> list[str]:
    """Spell the `sbatch --test-only` command for a job with these resources."""
    options = [f"{option}={resources[name]}" for option, name in OPTIONS.items() if resources.get(name)]
    if resources.get("nodes"):
        options.append(f"--ntasks={resources['nodes']}")
    return ["sbatch", "--test-only", *options, "--wrap=true"]


def ask(jobs: list[JobToRun]) -> tuple[State, str]:
    """Ask SLURM about the longest of the jobs of one kind; returns a state and SLURM's answer."""
    try:
        process = subprocess.run(spell_command(jobs[0].resources), capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return UNKNOWN, f"sbatch did not answer ({problem})"
    lines = [line.removeprefix("sbatch: ") for line in process.stderr.strip().splitlines()]
    return STOP if process.returncode else OK, lines[-1] if lines else "no answer"


def report_answers(groups: dict[str, list[JobToRun]]) -> list[CheckResult]:
    """Report one finding for each kind of job that SLURM accepts, and one for all kinds that it refuses for one
    reason.
    """
    results, refused = [], defaultdict[tuple[State, str], list[str]](list)
    for (kind, jobs), (state, message) in zip(groups.items(), at_once(ask, groups.values()), strict=True):
        if state == OK:
            message = f"{len(jobs)} to do, {_minutes(jobs[0].resources):,} minutes at most: {message}"
            results.append(CheckResult(state=OK, subject=f"SLURM: {kind}", message=message))
        else:
            refused[state, message].append(kind)
    for (state, message), kinds_of in refused.items():
        requests = [groups[kind][0].resources for kind in kinds_of]
        common = [
            name
            for name in OPTIONS.values()
            if requests[0].get(name) and len({request.get(name) for request in requests}) == 1
        ]
        if state == STOP:
            message = f"refuses {', '.join(f'{name} {requests[0][name]}' for name in common)}: {message}"
        results.append(CheckResult(state=state, subject=f"SLURM: {', '.join(kinds_of)}", message=message))
    return results


def find_missing_partitions(groups: dict[str, list[JobToRun]]) -> dict[str, str]:
    """Find the kinds of job whose partition is not there: a sentence for each.

    SLURM itself may answer that the account is invalid in combination with it. Where it names no partitions nothing is
    missing.
    """
    try:
        process = subprocess.run(
            ["sinfo", "--all", "--noheader", "--format=%R"], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    known_partitions = set(process.stdout.split()) if process.returncode == 0 else set()
    sentences = {}
    for kind, jobs in groups.items():
        partitions = str(jobs[0].resources.get("slurm_partition") or "")
        missing = [name for name in partitions.split(",") if name and name not in known_partitions]
        if known_partitions and missing:
            names = " ".join(sorted(known_partitions))
            sentences[kind] = (
                f"slurm_partition {partitions}: there is no partition {', '.join(map(repr, missing))}"
                f"{nearest(missing[0], known_partitions)}; sinfo has {names}. Name yours in an overlay "
                "(docs/on-your-cluster.md, step 2)"
            )
    return sentences


def list_trouble(configuration: str) -> list[str]:
    """Find settings in the output of `scontrol show config` that will cause trouble; a sentence for each."""
    values = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", configuration, re.MULTILINE))
    trouble = []
    age = re.match(r"\d+", values.get("MinJobAge", ""))
    if age and int(age[0]) < MIN_JOB_AGE:
        trouble.append(
            f"MinJobAge is {age[0]} s: a job may be forgotten by SLURM before Snakemake asks for it. Ask your "
            f"administrators for 300, the default"
        )
    if "job_comment" not in values.get("AccountingStoreFlags", ""):
        trouble.append(
            "AccountingStoreFlags has no job_comment: sacct will not show rule and wildcards; "
            "squeue -o '%i %T %k' does while a job is in the queue"
        )
    return trouble


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check each kind of job that is to do with SLURM, and the cluster's settings.

    Nothing is checked if jobs do not go to SLURM.
    """
    if dry_run.executor != "slurm":
        return []
    if shutil.which("sbatch") is None:
        results = [
            CheckResult(state=STOP, subject="SLURM", message="there is no sbatch here: run this where you submit jobs")
        ]
        if not dry_run.account:
            message = "default-resources.slurm_account: none in force; the executor plug-in will guess one"
            results.append(CheckResult(state=NOTE, subject="SLURM account", message=message))
        elif dry_run.account == PLACEHOLDER:
            results.append(CheckResult(state=STOP, subject="SLURM account", message=PLACEHOLDER_MESSAGE))
        return results
    groups = group_jobs(dry_run.jobs)
    kinds_by_sentence = defaultdict[str, list[str]](list)
    for kind, sentence in find_missing_partitions(groups).items():
        kinds_by_sentence[sentence].append(kind)
        del groups[kind]
    results = [
        CheckResult(state=STOP, subject=f"SLURM: {', '.join(kinds)}", message=sentence)
        for sentence, kinds in kinds_by_sentence.items()
    ]
    results += [*check_paths(dry_run.project.root), *report_answers(groups), *_check_settings()]
    if dry_run.account == PLACEHOLDER and any(result.state == STOP for result in results):
        results.append(CheckResult(state=STOP, subject="SLURM account", message=PLACEHOLDER_MESSAGE))
    return results


def check_paths(root: Path) -> list[CheckResult]:
    """Report paths that jobs cannot be submitted with: Snakemake writes them into a shell's command without quoting."""
    results = []
    # What a shell, or SLURM in the name of a log (%u is the user), takes for something else.
    if re.search(r"""['"\\$`\x00-\x1f]|%\d*[AabJjNnstux]""", str(root.resolve())):
        message = (
            f"{root.resolve()}: SLURM's jobs start in no folder with quotation marks, backslash, $, tab, line end or "
            "a letter of SLURM's behind %; rename it"
        )
        results.append(CheckResult(state=STOP, subject="SLURM: folder", message=message))
    if shlex.quote(sys.executable) != sys.executable:
        message = (
            f"{sys.executable}: SLURM's jobs are started with it, unquoted; make the environment where no space is"
        )
        results.append(CheckResult(state=STOP, subject="SLURM: interpreter", message=message))
    return results


def _check_settings() -> list[CheckResult]:
    try:
        process = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return [CheckResult(state=UNKNOWN, subject="SLURM: settings", message=f"scontrol did not answer ({problem})")]
    return [
        CheckResult(state=NOTE, subject="SLURM: settings", message=message) for message in list_trouble(process.stdout)
    ]
