"""Finds jobs that an earlier Snakemake submitted from this directory and that are still in SLURM's queue.

A Snakemake that is killed leaves its jobs behind, and the next one submits the same work again: SLURM's executor
plugin (2.8.0) does not look for them. The lock in a run's state directory keeps the second trainer from doing harm,
but it would wait inside an allocation of its own. So the second job is made to wait in the queue instead, until the
first has ended: profiles/slurm adds `after(...)` to the options of every training.

    python -m plumbline.operate.locks.orphan_jobs              list them
    python -m plumbline.operate.locks.orphan_jobs --cancel     end them; trainers save first
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError

FIELDS = "%i|%T|%j|%k|%Z"  # id, state, name, comment (rule and wildcards), working directory
#: What a line of ours looks like. Names, comments and folders of other jobs may hold any byte, a newline among them.
LINE = re.compile(r"(?P<id>\d+)\|(?P<state>\w+)\|(?P<name>plumbline_[^|]*)\|(?P<comment>[^|]*)\|(?P<directory>.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmJob:
    """A job in SLURM's queue. `comment` is the executor's `rule_<rule>_wildcards_<wildcards>`."""

    id: str
    state: str
    name: str
    directory: Path
    comment: str


def parse(listing: str, directory: Path) -> list[SlurmJob]:
    """Parse the output of `squeue --format=FIELDS`: jobs that a Snakemake in `directory` submitted through
    profiles/slurm.
    """
    jobs = []
    for line in listing.split("\n"):
        if (match := LINE.fullmatch(line)) and Path(match["directory"]) == directory:
            jobs.append(SlurmJob(**match.groupdict() | {"directory": directory}))
    return jobs


def list_queue(directory: Path) -> list[SlurmJob]:
    """Ask SLURM for this user's jobs from `directory` that have not ended.

    Raises:
        PlumblineError: SLURM does not answer.
    """
    command = ["squeue", "--me", "--noheader", f"--format={FIELDS}"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", timeout=120)
    except (FileNotFoundError, subprocess.TimeoutExpired) as problem:
        raise PlumblineError(f"cannot ask SLURM for its queue with squeue: {problem}") from None
    if process.returncode:
        raise PlumblineError(f"squeue failed: {process.stderr.strip()}")
    return parse(process.stdout, directory)


@functools.cache
def _read_first_queue() -> tuple[SlurmJob, ...]:
    """The queue as it was when this process first asked: jobs that this Snakemake submits later are not in it.

    Where SLURM is installed but does not answer, a dry run must still plan, and a real run will be told by sbatch; so
    that is a warning. Two trainers of one run are kept apart by the lock all the same.
    """
    try:
        return tuple(list_queue(Path.cwd()))
    except PlumblineError as problem:
        print(f"warning: jobs of an earlier Snakemake were not searched for: {problem}", file=sys.stderr)
        return ()


def after(rule: str, wildcards: Sequence[Any]) -> str:
    """Spell the sbatch option that lets a job begin only when an earlier Snakemake's jobs for the same output have
    ended.

    Empty if there are none, where there is no SLURM (a dry run on a laptop), and inside a job.
    """
    if "SLURM_JOB_ID" in os.environ or shutil.which("squeue") is None:
        return ""
    ids = [job.id for job in _read_first_queue() if job.comment == make_comment(rule, wildcards)]
    return f" --dependency=afterany:{':'.join(ids)}" if ids else ""


def make_comment(rule: str, wildcards: Sequence[Any]) -> str:
    """Spell the comment that Snakemake's SLURM plugin gives to a job."""
    return f"rule_{rule}_wildcards_{'_'.join(str(value) for value in wildcards)}"


def main() -> None:
    """List the jobs of an earlier Snakemake, and with ``--cancel`` end them."""
    parser = Parser(__doc__)
    parser.add_argument("--cancel", action="store_true", help="end them: TERM first, so that trainers save")
    arguments = parser.parse_args()
    jobs = list_queue(Path.cwd())
    for job in jobs:
        print(f"{job.id}\t{job.state}\t{job.comment}")
    if arguments.cancel and jobs:
        process = subprocess.run(["scancel", *(job.id for job in jobs)], capture_output=True, text=True)
        if process.returncode:
            raise PlumblineError(f"scancel failed: {process.stderr.strip()}")
        print(f"sent TERM to {len(jobs)} jobs", file=sys.stderr)


if __name__ == "__main__":
    run(main)
