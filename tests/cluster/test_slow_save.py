"""TERM to torchrun while its ranks save for longer than the 30 s that it gives them by itself. Needs no cluster, and
mostly waits, as the cluster's tests do."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from snakemake_on_cluster import HERE, REPOSITORY, free_port, until

from plumbline.operate import gpu_queue
from tests.model_specs import run_spec
from tests.train.small_runs import make_packs, products

pytestmark = pytest.mark.cluster
SAVE_SECONDS = 40
#: Sharded, so that every rank writes; the checkpoint of step 4 is being written when the signal comes.
OPTIONS = ["--device", "cpu", "--strategy", "fsdp", "--checkpoint-steps", "4"]


def of_slurm() -> list[str]:
    """What profiles/slurm has srun start for a run of a whole node, with two ranks."""
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.v9+.yaml").read_text())
    launch = profile["set-resources"]["pretrain"]["launch"]
    options = launch.partition("node='srun ")[2].partition("'")[0].partition(" --kill-on-bad-exit=1 ")[2]
    options = options.replace("--nproc-per-node=8", "--nproc-per-node=2")
    return shlex.split(options.replace("$(hostname):29500", f"127.0.0.1:{free_port()}"))


def of_gpus() -> list[str]:
    """What profiles/gpus starts for a run that gets all devices of the machine, of which there are two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_queue, "count_devices", lambda wildcards: 2)
        return shlex.split(gpu_queue.spell_launcher(None))


class Training:
    """A small run on two ranks, from torchrun on."""

    def __init__(self, launcher: list[str], packs: Path, work: Path) -> None:
        self.launcher, self.work, self.log = launcher, work, work / "log"
        work.mkdir()
        data = ["--training-pack", packs / "train.json", "--validation-pack", packs / "validation.json"]
        places = ["--state", work / "state", "--out", work / "out"]
        self.trainer = ["-m", "plumbline.train", "--spec", run_spec().to_json(), *data, *places, *OPTIONS]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *between: Path) -> None:
        """Start it with what stands `between` torchrun and the trainer."""
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PLUMBLINE_DEVICES": "0,1",
            "PLUMBLINE_DEVICE_LOCKS": str(self.work / "locks"),
            "SAVE_SECONDS": str(SAVE_SECONDS),
            "ENDED": str(self.work / "ended"),
        }
        with self.log.open("w") as log:
            command = [*self.launcher, *between, *self.trainer]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def tell(self, everyone: bool) -> None:
        """TERM to torchrun, and to its ranks as well where SLURM finds the processes of a step by their cgroup."""
        for process in self.processes() if everyone else self.processes()[-1:]:
            process.send_signal(signal.SIGTERM)

    def processes(self) -> list[psutil.Process]:
        """Its ranks, and torchrun last; none once that has ended."""
        if self.process is None or self.process.poll() is not None:
            return []
        torchrun = psutil.Process(self.process.pid)
        return [*torchrun.children(), torchrun]

    def ended(self) -> int:
        """torchrun's exit code."""
        assert self.process is not None
        return self.process.wait(300)

    def last_event(self) -> dict[str, Any]:
        """What the trainer last wrote down."""
        return json.loads((self.work / "state/progress.jsonl").read_text().splitlines()[-1])

    def codes(self) -> list[str]:
        """The exit codes of those ranks that ended by themselves."""
        return [path.read_text() for path in sorted(self.work.glob("ended.*"))]


def test_a_save_of_forty_seconds_outlives_term(tmp_path: Path) -> None:
    """Both launchers side by side. One is told once; the other, and its ranks, twice."""
    packs = make_packs(tmp_path)
    once = Training(of_gpus(), packs, tmp_path / "once")
    twice = Training(of_slurm(), packs, tmp_path / "twice")
    undisturbed = Training(of_gpus(), packs, tmp_path / "undisturbed")
    try:
        for training in (once, twice):
            training.start(HERE / "slow_save.py")
        for training in (once, twice):
            until((training.work / "state/.step-0000004").exists, 300, "the first checkpoint to be begun")
            training.tell(everyone=training is twice)
        began = time.monotonic()
        undisturbed.start()
        time.sleep(5)
        twice.tell(everyone=True)
        for training in (once, twice):
            assert training.ended() == 1, training.log.read_text()
            assert training.codes() == ["75", "75"], training.log.read_text()
            assert training.last_event()["event"] == "stopped"
            assert not (training.work / "state/run_lock.json").exists()
        assert time.monotonic() - began > 30, "torchrun by itself would have waited for this"
        stopped = {training: training.last_event()["step"] for training in (once, twice)}
        for training in (once, twice):
            training.start()
        for training in (once, twice, undisturbed):
            assert training.ended() == 0, training.log.read_text()
    finally:
        for training in (once, twice, undisturbed):
            for process in training.processes():
                process.kill()
    for training, step in stopped.items():
        assert f"resumed at step {step} from" in training.log.read_text()
        assert products(training.work) == products(undisturbed.work)
