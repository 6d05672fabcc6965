"""Faults of a cluster, each done to one training run of the smoke preset.

Every scenario starts `snakemake <weights> --profile slurm ...` in its own workspace, waits until the trainer is
well under way, does its harm, and waits for Snakemake to end. Its docstring is what the table of faults says was done,
its value what Snakemake printed. `Bench.run` compares the final weights, by SHA-256, with those of a run that nobody
disturbed. `test_cluster.py` asserts on the results, `faults` prints them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable

import snakemake_on_cluster as throwaway
from fault_trials import Training, finish
from snakemake_on_cluster import slurm, state, until


def resume(node: str) -> None:
    """Take a node back; it may have come back by itself."""
    with contextlib.suppress(RuntimeError):
        slurm("scontrol", "update", f"nodename={node}", "state=resume")


def unlock(training: Training) -> None:
    """What a user does who knows that Snakemake is gone."""
    throwaway.verb(training.workspace.path, "snakemake", "--unlock", "--cores", "1", "--config", "preset=smoke")


def cancelled(training: Training) -> str:
    """job cancelled (scancel)"""
    driver = training.start()
    training.under_way()
    slurm("scancel", driver.job())
    finish(training)
    return driver.said("SLURM status is", "Trying to restart")


def killed(training: Training) -> str:
    """trainer killed (kill -9)"""
    driver = training.start()
    os.kill(training.under_way()["pid"], signal.SIGKILL)
    finish(training)
    return driver.said("SLURM status is", "Trying to restart")


def step_killed(training: Training) -> str:
    """job step killed (scancel --signal=KILL)"""
    driver = training.start()
    training.under_way()
    slurm("scancel", "--signal=KILL", f"{driver.job()}.0")
    finish(training)
    return driver.said("SLURM status is", "Trying to restart")


def walltime(training: Training) -> str:
    """walltime reached: TERM before the limit, next slice by --preemptible-retries"""
    driver = training.start(runtime=60, slurm_extra="'--signal=TERM@600'")
    training.under_way()
    training.hold.touch()
    for slice_number in (1, 2):
        training.under_way(starts=slice_number)
        # The limit comes to the run, however long the machine took so far: TERM is due at once, with minutes to save.
        slurm("scontrol", "update", f"jobid={driver.job(slice_number - 1)}", "TimeLimit=9")
    training.under_way(starts=3)
    training.hold.unlink()
    finish(training, 700)
    return driver.said("SLURM status is", "Trying to restart")


def limit_in_save(training: Training) -> str:
    """time limit reached while a checkpoint is being written"""
    driver = training.start()
    training.under_way()
    training.hold.touch()
    training.save_hold.touch()
    slurm("scontrol", "update", f"jobid={driver.job()}", "TimeLimit=1")
    until(lambda: state(driver.job()) == "TIMEOUT", 200, "the limit")
    if not list(training.state.glob(".step-*")):
        raise RuntimeError("no save had begun")
    training.hold.unlink()
    training.save_hold.unlink()
    finish(training)
    return driver.said("SLURM status is", "Trying to restart")


def requeued(training: Training) -> str:
    """job requeued (scontrol requeue)"""
    driver = training.start()
    training.under_way()
    slurm("scontrol", "requeue", driver.job())
    finish(training)
    return driver.said("Finished jobid")


def driver_killed(training: Training) -> str:
    """Snakemake killed (kill -9) and started again while the job runs"""
    first = training.start(pause=0.15)
    training.under_way()
    job = first.job()
    first.kill()
    assert state(job) == "RUNNING"
    unlock(training)
    second = training.start(pause=0.15)
    reason = slurm("squeue", "--noheader", f"--jobs={second.job()}", "--format=%T, %r").strip()
    finish(training)
    return f"second job: {reason}; {second.said('Finished jobid')}"


def driver_killed_without_dependency(training: Training) -> str:
    """the same, but the second job not made to wait in the queue"""
    first = training.start()
    training.under_way()
    training.hold.touch()
    first.kill()
    unlock(training)
    second = training.start(slurm_extra="'--signal=TERM@60'")
    until(lambda: "waiting up to" in training.said(), 240, "the second trainer")
    training.hold.unlink()
    finish(training)
    return second.said("Finished jobid")


def corrupted(training: Training) -> str:
    """newest checkpoint corrupted"""
    first = training.start("--preemptible-retries", "0")
    training.under_way()
    slurm("scancel", first.job())
    first.wait(240)
    newest = max(training.state.glob("step-*"))
    victim = max(newest.iterdir(), key=lambda path: path.stat().st_size)
    with victim.open("r+b") as handle:
        handle.seek(victim.stat().st_size // 2)
        handle.write(b"\xff" * 64)
    training.start()
    finish(training)
    return training.drivers[-1].said("Finished jobid")


def full_disk(training: Training) -> str:
    """disk full while saving"""
    training.state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", training.state], check=True)
    try:
        driver = training.start()
        training.under_way()
        ballast = training.state / "ballast"
        with ballast.open("wb", buffering=0) as handle, contextlib.suppress(OSError):
            while True:
                handle.write(bytes(1 << 12))
        until(lambda: "SLURM status is" in driver.output(), 240, "the failure")
        ballast.unlink()
        finish(training)
        events = training.events()
    finally:
        subprocess.run(["umount", "--lazy", training.state], check=True)
    (training.state / "progress.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return driver.said("SLURM status is", "Trying to restart")


def drained(training: Training) -> str:
    """node drained"""
    driver = training.start()
    training.under_way()
    node = slurm("squeue", "--noheader", f"--jobs={driver.job()}", "--format=%N").strip()
    slurm("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        finish(training)
    finally:
        resume(node)
    return driver.said("Finished jobid")


def down(training: Training) -> str:
    """node down"""
    driver = training.start()
    training.under_way()
    node = slurm("squeue", "--noheader", f"--jobs={driver.job()}", "--format=%N").strip()
    slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    time.sleep(5)
    resume(node)
    finish(training)
    return driver.said("NODE_FAIL|Finished jobid")


def slurmd_killed(training: Training) -> str:
    """slurmd killed (kill -9), which leaves its trainer running; the job starts again on another node"""
    driver = training.start()
    training.under_way()
    training.hold.touch()
    node = slurm("squeue", "--noheader", f"--jobs={driver.job()}", "--format=%N").strip()
    os.kill(throwaway.daemon(f"slurmd-{node}"), signal.SIGKILL)
    try:
        until(lambda: "waiting up to" in training.said(), 240, "the second trainer")
        training.hold.unlink()
        finish(training)
    finally:
        throwaway.up()
    return driver.said("Finished jobid")


def preempt() -> None:
    """Ask for all GPUs, in a partition of higher priority."""
    slurm("sbatch", "--account=lab", "--partition=urgent", "--nodes=2", "--gres=gpu:8", "--time=1",
          "--output=/dev/null", "--wrap=sleep 3")  # fmt: skip


def preempted(training: Training) -> str:
    """job preempted by a partition of higher priority"""
    driver = training.start()
    training.under_way()
    preempt()
    finish(training)
    return driver.said("preemption|Finished jobid")


def preempted_for_good(training: Training) -> str:
    """the same where SLURM cancels what it preempts (`PreemptMode=CANCEL`)"""
    driver = training.start()
    training.under_way()
    slurm("scontrol", "update", "partitionname=gpus", "preemptmode=cancel")
    try:
        preempt()
        until(lambda: state(driver.job()) == "PREEMPTED", 60, "its end")
    finally:
        slurm("scontrol", "update", "partitionname=gpus", "preemptmode=requeue")
    finish(training)
    return driver.said("SLURM status is", "Trying to restart")


def controller_restarted(training: Training) -> str:
    """slurmctld killed (kill -9), back after 20 s"""
    driver = training.start()
    training.under_way()
    time.sleep(5)  # the controller writes its state every few seconds; an id it never wrote, it gives out twice
    os.kill(throwaway.daemon("slurmctld"), signal.SIGKILL)
    time.sleep(20)
    throwaway.up()
    finish(training)
    return driver.said("Finished jobid")


def accounting_stopped(training: Training) -> str:
    """slurmdbd away for 30 s"""
    driver = training.start()
    training.under_way()
    os.kill(throwaway.daemon("slurmdbd"), signal.SIGKILL)
    time.sleep(30)
    throwaway.up()
    finish(training)
    return driver.said("Finished jobid")


def rank_killed(training: Training) -> str:
    """`large`, two nodes: one of two ranks killed (kill -9)"""
    driver = training.start()
    training.under_way()
    os.kill(training.events()[-1]["pid"], signal.SIGKILL)
    finish(training)
    return driver.said("SLURM status is", "Trying to restart")


#: Short enough for every run of the tests; they run side by side.
QUICK: tuple[Callable[[Training], str], ...] = (cancelled, killed, walltime)
#: The others that touch nothing but their own run.
SEPARATE: tuple[Callable[[Training], str], ...] = (
    step_killed, limit_in_save, requeued, driver_killed, driver_killed_without_dependency, corrupted, full_disk,
)  # fmt: skip
#: These touch nodes or daemons that all share: one after another.
EXCLUSIVE: tuple[Callable[[Training], str], ...] = (
    drained, down, slurmd_killed, preempted, preempted_for_good, controller_restarted, accounting_stopped,
)  # fmt: skip
#: Of a run over two nodes, compared with its own undisturbed twin.
TWO_NODES: tuple[Callable[[Training], str], ...] = (rank_killed,)
