"""Mends what Snakemake's SLURM executor (its plugin, 2.8.0) does while a part of SLURM is away, and when SLURM gives a
job up.

It waits forever for a job that was preempted for good, and for one that SLURM has forgotten. While the controller is
away it turns from squeue to sacct, where a cancelled job is never noticed, and where nothing is accounted it never
turns back. A job that it submits while the controller is away has failed, and with its attempts the workflow.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from plumbline.project import snakemake_internals, snakemake_messages

#: Versions of the plugin whose source was read for this.
SEEN_WITH = ("2.8",)
#: After so many answers in a row by which SLURM gave a job up, it has.
ANSWERS = 2
#: Seconds between two questions whether the controller is back.
PAUSE = 10.0
#: States after which the executor asks no more.
ENDED = {
    *("COMPLETED", "BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT", "ERROR"),
    "UNKNOWN",
}


class JobStates:
    """What SLURM answers of this workflow's jobs, in states that the executor acts on."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self.waiting_for: set[str] = set()
        self.answers: dict[str, int] = {}

    def read(self, states: dict[str, str], of_queue: bool) -> dict[str, str]:
        """Read an answer, job by job; that of the queue (not of the accounting) says what SLURM gave up.

        In the queue PREEMPTED is an end: a job that will run again is PENDING there.
        """
        states = {job: (state.split() or [state])[0] for job, state in states.items()}  # "CANCELLED by 1000"
        if of_queue:
            self.waiting_for |= {job for job in states if "[" not in job}  # that is the rest of an array, and shrinks
            given_up = [job for job in self.waiting_for if states.get(job, "PREEMPTED") == "PREEMPTED"]
            self.answers = {job: self.answers.get(job, 0) + 1 for job in given_up}
            for job in given_up:
                if self.answers[job] == ANSWERS:
                    self._warn_of(job, job in states)
                if self.answers[job] >= ANSWERS:
                    states[job] = "CANCELLED" if job in states else "UNKNOWN"
        self.waiting_for -= {job for job, state in states.items() if state in ENDED}
        return states

    def _warn_of(self, job: str, is_listed: bool) -> None:
        if is_listed:
            self.warn(f"SLURM job {job} was preempted and not requeued (PreemptMode): it counts as cancelled")
        else:
            self.warn(f"SLURM no longer knows job {job}: whether it succeeded is told by its files")


def mend(workflow: Any) -> None:
    """Mend the executor of a workflow that is about to run its jobs, where that is SLURM's; called at its start."""
    plugin: Any = sys.modules.get("snakemake_executor_plugin_slurm")
    if plugin is None or snakemake_internals.runs_jobs_here(workflow):
        return
    stop = threading.Event()
    snakemake_internals.before_cancelling(workflow, stop.set)
    replace_parts(plugin, stop, snakemake_messages.logger().warning)


def replace_parts(plugin: Any, stop: threading.Event, warn: Callable[[str], None]) -> None:
    """Replace the parts of the plugin that do not bear with SLURM's absence; `stop` ends the wait for it."""
    query, submit = plugin.query_job_status, plugin.Executor.run_job
    jobs = JobStates(warn)

    async def query_again(command: str, logger: Any) -> tuple[dict[str, str] | None, float | None]:
        states, seconds = await query(command, logger)
        of_queue = command.startswith("squeue")
        if states is None and not of_queue:
            *_, run = shlex.split(command)
            states, seconds = await query(plugin.query_job_status_squeue(run), logger)
            of_queue = True
        # Some answer without an error, and without jobs, in the controller's absence (a site's own squeue).
        if states is None or (of_queue and jobs.waiting_for - set(states) and is_away()):
            return None, None
        return jobs.read(states, of_queue), seconds

    def submit_when_possible(executor: Any, job: Any) -> None:
        """In a thread of the executor's own."""
        wait_for_controller(stop, warn)
        submit(executor, job)

    plugin.query_job_status, plugin.Executor.run_job = query_again, submit_when_possible


def wait_for_controller(stop: threading.Event, warn: Callable[[str], None]) -> None:
    """Wait until SLURM's controller is there to take a job."""
    has_warned = False
    while is_away() and not stop.is_set():
        if not has_warned:
            warn("SLURM's controller does not answer (scontrol ping); jobs are submitted when it is back")
        has_warned = True
        stop.wait(PAUSE)


def is_away() -> bool:
    """Whether `scontrol ping` says of every controller that it is down."""
    try:
        process = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
    return set(re.findall(r" (?:is|are) (UP|DOWN)\b", process.stdout)) == {"DOWN"}
