"""Several devices in one machine: two runs never have one at a time, whatever a run leaves behind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.verdict.own_trainer.trainers import make, trainer, write_toml

#: Locks its device, as memory of a GPU is taken, and leaves a process behind that holds it; every second one dies.
TRAIN = """\
import fcntl, os, sys, time
seed, device = int(sys.argv[sys.argv.index("--seed") + 1]), os.environ["CUDA_VISIBLE_DEVICES"]
taken = open(os.path.join(os.environ["DEVICES"], device), "a")
try:
    fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    device = "shared"
with open(os.path.join(os.environ["DEVICES"], "told"), "a") as told:
    told.write(f"{device}\\n")
if os.fork() == 0:
    os.setsid()
    time.sleep(60)
time.sleep(0.1 * (seed % 3))
if seed % 2:
    os.kill(os.getpid(), 9)
print(f"val_bpb: 1.{seed}")
os._exit(0)
"""


def test_no_two_runs_share_a_device_and_a_crash_frees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICES", str(tmp_path))
    folder = make(tmp_path / "mine", TRAIN)
    write_toml(folder, more='[where]\ngpus = "3, 5"')
    runs = list(trainer(folder, "--changed").run([("candidate", seed) for seed in range(5)]))
    assert {run.seed: run.outcome for run in runs} == {seed: "crashed" if seed % 2 else "finished" for seed in range(5)}
    devices = Counter((tmp_path / "told").read_text().split())
    assert set(devices) == {"3", "5"} and min(devices.values()) > 1
