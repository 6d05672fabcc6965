"""Faults of a cluster, each done to one training run of the smoke preset, and what came of it.

Every scenario starts `snakemake <weights> --profile slurm ...` in a workspace of its own, waits until the trainer is
well under way, does its harm, waits for Snakemake to end, and compares the final weights, by SHA-256, with those of a
run that nobody disturbed. `test_cluster.py` asserts on the results, `faults` prints them as a table.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import yaml
from harness import Snakemake, Workspace, slurm, state, until

from plumbline.files import sha256_file

STEPS = 400
UNDER_WAY = 80  # at this step there are checkpoints to lose
RUN = "transfer/{scale}/baseline/s42"
OPTIONS = "--checkpoint-steps 25 --report-seconds 0 --lease-seconds 20"
PACKS = [f"work/smoke/packs/context64/{name}.json" for name in ("base", "large", "validation")]
#: The trainer's words that tell what became of a fault.
TELLING = r"resumed at|asked to stop|damaged|took over|waiting up to|No space|error:|completed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came of one fault. `lost`: steps that were trained twice."""

    name: str
    done: str
    snakemake: str
    trainer: str
    starts: list[int]
    lost: int
    equal: bool
    seconds: float


class Training:
    """One run in one workspace, with what is asked about it."""

    def __init__(self, workspace: Workspace, scale: str = "base") -> None:
        self.workspace = workspace
        run = RUN.format(scale=scale)
        self.state = workspace.path / "work" / "smoke" / "state" / run
        self.weights = f"work/smoke/runs/{run}/model.safetensors"
        self.drivers: list[Snakemake] = []

    def start(self, *words: str, pause: float = 0.05, **pretrain: object) -> Snakemake:
        """Start Snakemake for it."""
        launch = harness.small_resources()["launch"].replace(":29500", f":{harness.free_port()}")
        launch = re.sub(r"'(?=[,)])", f" {harness.HERE / 'launch.py'}'", launch)  # the last word of either launcher
        launch = launch.replace(" python ", f" {sys.executable} ")
        driver = self.workspace.snakemake(
            self.weights, *words, "--config", "preset=smoke",
            profiles=self.workspace.small(**({"launch": launch} | pretrain)),
            environment={"TRAIN_OPTIONS": OPTIONS, "TRAIN_PAUSE": str(pause)},
        )  # fmt: skip
        self.drivers.append(driver)
        return driver

    def events(self) -> list[dict[str, Any]]:
        """The trainer's own record, which outlives its attempts."""
        path = self.state / "progress.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def step(self) -> int:
        """Where the newest start has come to."""
        events = self.events()
        return int(events[-1]["step"]) if events else 0

    def under_way(self, step: int = UNDER_WAY, starts: int = 1) -> dict[str, Any]:
        """Wait for the trainer to come to `step` in its `starts`-th start; its last event."""
        until(
            lambda: (len(self.starts()) >= starts and self.step() >= step) or self.drivers[-1].process.poll() is not None,
            240, f"step {step}",
        )  # fmt: skip
        if self.drivers[-1].process.poll() is not None:
            raise RuntimeError(f"Snakemake ended before step {step}:\n{self.drivers[-1].output()[-3000:]}")
        return self.events()[-1]

    def starts(self) -> list[int]:
        """The step at which each start began."""
        return [event["step"] for event in self.events() if event["event"] == "start"]

    def lost(self) -> int:
        """Steps that were done more than once."""
        reached = lost = 0
        for event in self.events():
            if event["event"] == "start":
                lost += max(reached - event["step"], 0)
            reached = event["step"]
        return lost

    def digest(self) -> str:
        """SHA-256 of the final weights."""
        return sha256_file(self.workspace.path / self.weights)

    def said(self) -> str:
        """The trainer's telling words, of all its attempts (Snakemake keeps the last one's log only)."""
        logs = sorted((self.workspace.path / "logs").rglob("*.log")) + [driver.log for driver in self.drivers]
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
        found = dict.fromkeys(line.split("s42: ")[-1].strip() for line in lines if re.search(TELLING, line))
        folder = str(self.workspace.path)
        return "; ".join(line.replace(f"{folder}/", "")[:160] for line in found if "rule" not in line)[:600]


def finish(training: Training, seconds: float = 420) -> None:
    """Wait for the last Snakemake to succeed."""
    driver = training.drivers[-1]
    if driver.wait(seconds) != 0:
        raise RuntimeError(f"Snakemake failed:\n{driver.output()[-4000:]}")


def unlock(training: Training) -> None:
    """What a user does who knows that Snakemake is gone."""
    harness.verb(training.workspace.path, "snakemake", "--unlock", "--cores", "1", "--config", "preset=smoke")


def undisturbed(training: Training) -> str:
    """nothing"""
    training.start()
    finish(training)
    return ""


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
    """walltime reached: TERM before the limit, next slice by --retries"""
    driver = training.start(pause=0.3, runtime=2, slurm_extra="'--signal=TERM@40'")
    finish(training, 700)
    return driver.said("SLURM status is", "Trying to restart")


def requeued(training: Training) -> str:
    """job requeued (scontrol requeue)"""
    driver = training.start()
    training.under_way()
    slurm("scontrol", "requeue", driver.job())
    finish(training)
    return driver.said("Finished jobid")


def driver_killed(training: Training) -> str:
    """Snakemake killed (kill -9), started again while the job runs"""
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
    """the same, second job not made to wait in the queue: the lease alone"""
    first = training.start(pause=0.15)
    training.under_way()
    first.kill()
    unlock(training)
    second = training.start(pause=0.15, slurm_extra="'--signal=TERM@60'")
    until(lambda: state(second.job()) == "RUNNING", 60, "the second job")
    finish(training)
    return second.said("Finished jobid")


def corrupted(training: Training) -> str:
    """newest checkpoint corrupted"""
    first = training.start("--retries", "0")
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
        with ballast.open("wb") as handle:
            try:
                while True:
                    handle.write(bytes(1 << 16))
                    handle.flush()
            except OSError:
                pass
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
        slurm("scontrol", "update", f"nodename={node}", "state=resume")
    return driver.said("Finished jobid")


def down(training: Training) -> str:
    """node down"""
    driver = training.start()
    training.under_way()
    node = slurm("squeue", "--noheader", f"--jobs={driver.job()}", "--format=%N").strip()
    slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    time.sleep(5)
    slurm("scontrol", "update", f"nodename={node}", "state=resume")
    finish(training)
    return driver.said("NODE_FAIL|Finished jobid")


def preempted(training: Training) -> str:
    """job preempted by a partition of higher priority"""
    driver = training.start()
    training.under_way()
    slurm("sbatch", "--account=lab", "--partition=urgent", "--nodes=2", "--gres=gpu:8", "--time=1",
          "--output=/dev/null", "--wrap=sleep 3")  # fmt: skip
    finish(training)
    return driver.said("preemption|Finished jobid")


def controller_restarted(training: Training) -> str:
    """slurmctld killed (kill -9), back after 20 s"""
    driver = training.start()
    training.under_way()
    time.sleep(5)  # the controller writes its state every few seconds; an id it never wrote, it gives out twice
    os.kill(harness.daemon("slurmctld"), signal.SIGKILL)
    time.sleep(20)
    harness.up()
    finish(training)
    return driver.said("Finished jobid")


def accounting_stopped(training: Training) -> str:
    """slurmdbd away for 30 s"""
    driver = training.start()
    training.under_way()
    os.kill(harness.daemon("slurmdbd"), signal.SIGKILL)
    time.sleep(30)
    harness.up()
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
    step_killed, requeued, driver_killed, driver_killed_without_dependency, corrupted, full_disk,
)  # fmt: skip
#: These touch nodes or daemons that all share: one after another.
EXCLUSIVE: tuple[Callable[[Training], str], ...] = (
    drained, down, preempted, controller_restarted, accounting_stopped,
)  # fmt: skip
#: Of a run over two nodes, compared with its own undisturbed twin.
TWO_NODES: tuple[Callable[[Training], str], ...] = (rank_killed,)


class Bench:
    """Makes workspaces, prepares the data once, knows the undisturbed weights."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.prepared = Workspace.checkout(root / "prepared")
        lengthen(self.prepared)
        command = [sys.executable, "-m", "snakemake", *PACKS, "--config", "preset=smoke"]
        done = subprocess.run(command, cwd=self.prepared.path, env=harness.cluster_environment(), capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.decode()[-4000:])
        self.digests: dict[str, str] = {}

    def training(self, name: str, scale: str = "base") -> Training:
        """A run in a fresh workspace."""
        workspace = Workspace.checkout(self.root / name, self.prepared.path)
        lengthen(workspace)
        return Training(workspace, scale)

    def reference(self, scale: str = "base") -> str:
        """The weights of a run that nobody disturbs."""
        if scale not in self.digests:
            training = self.training(f"undisturbed-{scale}", scale)
            undisturbed(training)
            self.digests[scale] = training.digest()
        return self.digests[scale]

    def run(self, scenario: Callable[[Training], str]) -> Result:
        """Do it, clean up after it."""
        scale = "large" if scenario in TWO_NODES else "base"
        training = self.training(scenario.__name__, scale)
        began = time.monotonic()
        try:
            snakemake = scenario(training)
        finally:
            for driver in training.drivers:
                driver.end()
        return Result(
            name=scenario.__name__,
            done=scenario.__doc__ or "",
            snakemake=snakemake,
            trainer=training.said(),
            starts=training.starts(),
            lost=training.lost(),
            equal=training.digest() == self.reference(scale),
            seconds=time.monotonic() - began,
        )


def lengthen(workspace: Workspace) -> None:
    """Give the smoke runs of a workspace enough steps to be disturbed in."""
    path = workspace.path / "config" / "studies" / "transfer.yaml"
    study = yaml.safe_load(path.read_text())
    for scale in ("base", "large"):
        study["scales"][scale]["smoke"]["train"] |= {"steps": STEPS, "validate_every": STEPS // 4}
    path.write_text(yaml.safe_dump(study, sort_keys=False))
