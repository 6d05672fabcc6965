"""One training run of the smoke preset in its own workspace, and what is measured about it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import snakemake_on_cluster as throwaway
import yaml
from snakemake_on_cluster import Snakemake, Workspace, until

from plumbline.core.files import sha256_file

STEPS = 400
UNDER_WAY = 80  # at this step there are checkpoints to lose
RUN = "transfer/{scale}/baseline/s42"
OPTIONS = "--checkpoint-steps 25 --report-every 0.001s --stale-lock-after 20s"
PACKS = [f"work/smoke/corpora/climbmix/packs/context64/{split}" for split in ("train", "validation")]
#: The trainer's messages that show what became of a fault.
NOISE = r"slurmstepd|srun: error|\brule\b"
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
    """One run in one workspace, with what is measured about it."""

    def __init__(self, workspace: Workspace, scale: str = "base") -> None:
        self.workspace = workspace
        run = RUN.format(scale=scale)
        self.state = workspace.path / "work" / "smoke" / "state" / run
        self.weights = f"work/smoke/runs/{run}/model.safetensors"
        self.drivers: list[Snakemake] = []
        #: While it is there, no step of the run ends.
        self.hold = workspace.path / "hold"
        #: While it is there, no save of the run ends.
        self.save_hold = workspace.path / "save_hold"

    def start(self, *targets: str, pause: float = 0.05, **pretrain: object) -> Snakemake:
        """Start Snakemake for it."""
        launch = throwaway.small_resources()["launch"].replace(":29500", f":{throwaway.free_port()}")
        # Before the last quote: after the last word of either launcher.
        launch = re.sub(r"'(?=[,)])", f" {throwaway.HERE / 'fault_launcher.py'}'", launch)
        launch = launch.replace(" python ", f" {sys.executable} ")
        driver = self.workspace.snakemake(
            self.weights, *targets, "--config", "preset=smoke",
            profiles=self.workspace.small(**({"launch": launch} | pretrain)),
            environment={
                "TRAIN_OPTIONS": OPTIONS,
                "TRAIN_PAUSE": str(pause),
                "TRAIN_HOLD": str(self.hold),
                "SAVE_HOLD": str(self.save_hold),
            },
        )  # fmt: skip
        self.drivers.append(driver)
        return driver

    def events(self) -> list[dict[str, Any]]:
        """The trainer's own record, which outlives its attempts."""
        path = self.state / "progress.jsonl"
        events = []
        for line in path.read_text().splitlines() if path.exists() else []:
            with contextlib.suppress(json.JSONDecodeError):  # a full disk cuts a line short
                events.append(json.loads(line))
        return events

    def step(self) -> int:
        """Where the newest start has come to."""
        events = self.events()
        return int(events[-1]["step"]) if events else 0

    def under_way(self, step: int = UNDER_WAY, starts: int = 1) -> dict[str, Any]:
        """Wait for the trainer to come to `step` in its `starts`-th start; its last event."""
        until(
            lambda: (
                (len(self.starts()) >= starts and self.step() >= step) or self.drivers[-1].process.poll() is not None
            ),
            600,
            f"step {step} of start {starts}",
        )
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
        """The trainer's informative lines, of all its attempts (Snakemake keeps the last one's log only)."""
        logs = sorted((self.workspace.path / "logs").rglob("*.log")) + [driver.log for driver in self.drivers]
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
        lines_said = dict.fromkeys(line.split("s42: ")[-1].strip() for line in lines if re.search(TELLING, line))
        folder = str(self.workspace.path)
        return "; ".join(line.replace(f"{folder}/", "")[:160] for line in lines_said if not re.search(NOISE, line))[
            :600
        ]


def finish(training: Training, seconds: float = 420) -> None:
    """Wait for the last Snakemake to succeed."""
    driver = training.drivers[-1]
    if driver.wait(seconds) != 0:
        raise RuntimeError(f"Snakemake failed:\n{driver.output()[-4000:]}")


class Bench:
    """Makes workspaces, prepares the data once, knows the undisturbed weights."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.prepared = Workspace.checkout(root / "prepared")
        lengthen(self.prepared)
        command = [sys.executable, "-m", "snakemake", *PACKS, "--config", "preset=smoke"]
        process = subprocess.run(
            command, cwd=self.prepared.path, env=throwaway.cluster_environment(), capture_output=True
        )
        if process.returncode:
            raise RuntimeError(process.stderr.decode()[-4000:])
        self.digests: dict[str, str] = {}
        self.making = threading.Lock()

    def training(self, name: str, scale: str = "base") -> Training:
        """A run in a fresh workspace."""
        workspace = Workspace.checkout(self.root / name, self.prepared.path)
        lengthen(workspace)
        return Training(workspace, scale)

    def reference(self, scale: str = "base") -> str:
        """The weights of a run that nobody disturbs; made once, also when several ask at once."""
        with self.making:
            if scale not in self.digests:
                self.digests[scale] = self._undisturbed(scale)
            return self.digests[scale]

    def _undisturbed(self, scale: str) -> str:
        training = self.training(f"undisturbed-{scale}", scale)
        training.start()
        finish(training)
        return training.digest()

    def run(self, scenario: Callable[[Training], str], scale: str = "base") -> Result:
        """Do it, clean up after it, compare."""
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
    path = workspace.path / "studies" / "transfer" / "study.yaml"
    study = yaml.safe_load(path.read_text())
    for scale in ("base", "large"):
        study["scales"][scale]["smoke"]["train"] |= {"steps": STEPS, "validate_every": STEPS // 4}
    path.write_text(yaml.safe_dump(study, sort_keys=False))
