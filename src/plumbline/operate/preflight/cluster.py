"""Asks SLURM, before the first job, whether it would accept every kind of job that is to do.

Nothing is submitted: the longest job of each kind goes to `sbatch --test-only`, with the limits that Snakemake would
give it. That finds wrong account and partition names, time limits above a partition's, and nodes that are too small,
all of which would otherwise show as failed jobs, or as jobs that wait for ever. The settings of the cluster that the
executor plugin depends on are looked at as well.
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
#: The account that profiles/slurm names until a site puts its own there.
PLACEHOLDER = "plumbline"
#: What to do about that account, of which few sites will know.
PLACEHOLDER_WORDS = (
    "profiles/slurm/config.v9+.yaml: default-resources.slurm_account: 'plumbline' is a placeholder; put your account "
    "and partitions into an overlay (docs/on-your-cluster.md, step 2): sacctmgr show associations user=$USER"
)


def check_paths(root: Path) -> list[CheckResult]:
    """Report paths that jobs cannot be submitted with: Snakemake writes them into a shell's command without quoting."""
    found = []
    if re.search(r"""['"\\$`]""", str(root.resolve())):
        words = f"{root.resolve()}: SLURM's jobs start in no folder with quotation marks, backslash or $; rename it"
        found.append(CheckResult(state=STOP, what="SLURM: folder", words=words))
    if shlex.quote(sys.executable) != sys.executable:
        words = f"{sys.executable}: SLURM's jobs are started with it, unquoted; make the environment where no space is"
        found.append(CheckResult(state=STOP, what="SLURM: interpreter", words=words))
    return found


def kinds(jobs: Iterable[JobToRun]) -> dict[str, list[JobToRun]]:
    """Group the jobs that go to SLURM by rule and by the resources they ask for, time left out.

    Each group's longest job comes first.
    """
    found: dict[tuple[Any, ...], list[JobToRun]] = defaultdict(list)
    for job in jobs:
        if job.asked:
            found[job.rule, *(job.asked.get(name) for name in OPTIONS.values() if name != "runtime")].append(job)
    named: dict[str, list[JobToRun]] = {}
    for (rule, *_), alike in found.items():
        alike.sort(key=lambda job: _minutes(job.asked), reverse=True)
        asked = alike[0].asked
        devices = f" {asked['nodes']} x" if asked.get("nodes") else ""
        name = f"{rule}{devices} {asked.get('gres', '')}".strip()
        named[f"{name} ({len(named) + 1})" if name in named else name] = alike
    return named


def _minutes(asked: dict[str, Any]) -> int:
    return int(asked.get("runtime") or 0)


def command(asked: dict[str, Any]) -> list[str]:
    """Spell the `sbatch --test-only` command for a job with these resources."""
    words = [f"{option}={asked[name]}" for option, name in OPTIONS.items() if asked.get(name)]
    if asked.get("nodes"):
        words.append(f"--ntasks={asked['nodes']}")
    return ["sbatch", "--test-only", *words, "--wrap=true"]


def ask(jobs: list[JobToRun]) -> tuple[State, str]:
    """Ask SLURM about the longest of the jobs of one kind; its answer as a state and words."""
    try:
        done = subprocess.run(command(jobs[0].asked), capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return UNKNOWN, f"sbatch did not answer ({problem})"
    lines = [line.removeprefix("sbatch: ") for line in done.stderr.strip().splitlines()]
    return STOP if done.returncode else OK, lines[-1] if lines else "no answer"


def answers(of: dict[str, list[JobToRun]]) -> list[CheckResult]:
    """Report one finding for each kind of job that SLURM accepts, and one for all kinds that it refuses for one
    reason.
    """
    found, refused = [], defaultdict[tuple[State, str], list[str]](list)
    for (kind, jobs), (state, words) in zip(of.items(), at_once(ask, of.values()), strict=True):
        if state == OK:
            words = f"{len(jobs)} to do, {_minutes(jobs[0].asked):,} minutes at most: {words}"
            found.append(CheckResult(state=OK, what=f"SLURM: {kind}", words=words))
        else:
            refused[state, words].append(kind)
    for (state, words), kinds_of in refused.items():
        asked = [of[kind][0].asked for kind in kinds_of]
        common = [
            name for name in OPTIONS.values() if asked[0].get(name) and len({one.get(name) for one in asked}) == 1
        ]
        if state == STOP:
            words = f"refuses {', '.join(f'{name} {asked[0][name]}' for name in common)}: {words}"
        found.append(CheckResult(state=state, what=f"SLURM: {', '.join(kinds_of)}", words=words))
    return found


def settings(configuration: str) -> list[str]:
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

    Nothing is checked where jobs do not go to SLURM.
    """
    if dry_run.executor != "slurm":
        return []
    if shutil.which("sbatch") is None:
        found = [CheckResult(state=STOP, what="SLURM", words="there is no sbatch here: run this where you submit jobs")]
        if not dry_run.account:
            words = "default-resources.slurm_account: none in force; the executor plug-in will guess one"
            found.append(CheckResult(state=NOTE, what="SLURM account", words=words))
        elif dry_run.account == PLACEHOLDER:
            found.append(CheckResult(state=STOP, what="SLURM account", words=PLACEHOLDER_WORDS))
        return found
    found = [*check_paths(dry_run.project.root), *answers(kinds(dry_run.jobs)), *_settings()]
    if dry_run.account == PLACEHOLDER and any(one.state == STOP for one in found):
        found.append(CheckResult(state=STOP, what="SLURM account", words=PLACEHOLDER_WORDS))
    return found


def _settings() -> list[CheckResult]:
    try:
        done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return [CheckResult(state=UNKNOWN, what="SLURM: settings", words=f"scontrol did not answer ({problem})")]
    return [CheckResult(state=NOTE, what="SLURM: settings", words=words) for words in settings(done.stdout)]
