"""The machine: device, room, who else is here, the environment. Each obstacle is made, and one machine has none."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core import process_record
from plumbline.operate.locks import workflow_lock
from plumbline.operate.preflight import disk_and_memory, environment, gpu, in_use
from plumbline.operate.preflight.dry_run import JobToRun
from plumbline.train.checkpoint import run_lock
from tests.forget_caches import forget
from tests.operate.preflight.made_up_plans import TEXTS, TRAIN, dry_run, join


def sees(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> None:
    answer = {"torch": "2.13.0", "cuda": "13.0", "devices": [], "bfloat16": False} | facts
    monkeypatch.setattr(gpu, "ask_torch", lambda: answer)


def test_the_device(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(state: str, **options: Any) -> str:
        return join(gpu.check(dry_run(root, TRAIN, **options)), state)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    sees(monkeypatch)
    text = check("note", preset="mini")
    assert "presets/mini.yaml: device: gpu wants" in text
    assert "runs on processors; " in text
    assert "bfloat16 (1 of 1 runs) is emulated" in text and re.search(r"take about \d+ hours on two cores", text)
    assert "machine: one_h100 wants a GPU" in check("note", machine="one_h100")
    assert "preset smoke is for" in check("ok")
    assert "slurm gives them" in check("not known", preset="mini", executor="slurm")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES is ''" in check("note", preset="mini")
    sees(monkeypatch, cuda=None, torch="2.13.0+cpu")
    assert "torch 2.13.0+cpu is built" in check("note", preset="mini")
    sees(monkeypatch, devices=["NVIDIA X"], bfloat16=True)
    assert "1 x NVIDIA X, torch 2.13.0" in check("ok", preset="mini")
    sees(monkeypatch, devices=["NVIDIA V"])
    assert "bfloat16, which 1 of 1 runs compute" in check("note", preset="mini")
    assert gpu.check(dry_run(root, TEXTS, preset="mini")) == []


def test_torch_is_asked_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    forget(gpu)
    here = gpu.ask_torch()
    forget(gpu)
    assert here["devices"] == [] and here["torch"].startswith("2.")


def test_too_little_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"free": 10**6}
    monkeypatch.setattr(disk_and_memory.shutil, "disk_usage", lambda place: SimpleNamespace(**free))
    of = dry_run(root, TEXTS, TRAIN, preset="mini", work="w")
    message = join([disk_and_memory.check_disk(of)], "would stop")
    assert re.search(r"^disk: work: w: about [\d.]+ GB to write, 1.*folder", message)
    damaged = root / "w/mini/packages/a.whl.rejected"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(bytes(2 * 10**6))
    assert "2 MB are leftovers: plumbline cleanup" in join([disk_and_memory.check_disk(of)], "would stop")
    free["free"] = 10**12
    assert "1 TB free; quotas" in join([disk_and_memory.check_disk(of)], "ok")


def test_what_is_there_need_not_be_written(root: Path) -> None:
    def to_write(*jobs: JobToRun) -> float:
        message = disk_and_memory.check_disk(dry_run(root, *jobs, preset="mini")).message
        size, unit = re.search(r"about ([\d.]+) (GB|MB|B) to", message).groups()
        return float(size) * {"GB": 1, "MB": 1e-3, "B": 1e-9}[unit]

    both = to_write(TEXTS, TRAIN)
    assert both > to_write(TRAIN) > to_write() == 0
    state = root / "work/mini/state/transfer/base/baseline/s42/step-0000001/weights"
    state.parent.mkdir(parents=True)
    with open(state, "wb") as file:
        file.truncate(3 * 10**8)
    assert to_write(TEXTS, TRAIN) == pytest.approx(both - 0.3, abs=0.06)


def test_a_folder_that_cannot_be_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dry_run(root, TRAIN)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert f"work: work: {root} cannot" in join([disk_and_memory.check_disk(whole)], "would stop")


def test_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(state: str, total: float, free: float) -> str:
        here = SimpleNamespace(total=total * 1e9, available=free * 1e9)
        monkeypatch.setattr(disk_and_memory.psutil, "virtual_memory", lambda: here)
        return join(disk_and_memory.check_memory(dry_run(root, TEXTS, TRAIN)), state)

    assert "(documents) asks for 1.5 GB of 8" in check("ok", 8, 7)
    assert "of 1 GB, all" in check("would stop", 1, 1)
    assert "5.5 GB together, 3 GB are free now: --resources mem_mb=3000" in check("note", 8, 3)
    assert len(disk_and_memory.check(dry_run(root, TEXTS, executor="slurm"))) == 1, "the memory of nodes is theirs"


def test_another_snakemake_in_this_directory(tmp_path: Path) -> None:
    assert "other Snakemake holds" in join(in_use.check(tmp_path), "ok")
    persistence = tmp_path / ".snakemake"
    persistence.mkdir()
    with workflow_lock.hold(persistence, "snakemake all"):
        record = (persistence / workflow_lock.RECORD).read_bytes()
        assert f"held by process {os.getpid()}" in join(in_use.check(tmp_path), "would stop")
        assert (persistence / workflow_lock.RECORD).read_bytes() == record
    gone = process_record.identity() | {
        "pid": 2**22 + 1,
        "process_started": "1",
        "boot": process_record.boot(),
        "locked": True,
    }
    (persistence / workflow_lock.RECORD).write_text(json.dumps(gone))
    assert "no longer runs (process 4194305" in join(in_use.check(tmp_path), "ok")
    assert (persistence / workflow_lock.RECORD).exists(), "looking removes nothing"


def test_a_run_that_is_being_trained(root: Path) -> None:
    state = root / "work/smoke/state/transfer/base/baseline/s42"
    with run_lock.RunLock(state, limit=60, wait=0):
        message = join(in_use.list_trainers(dry_run(root, TRAIN)), "note")
    assert "transfer/base/baseline/s42 is being trained" in message
    assert in_use.list_trainers(dry_run(root, TRAIN)) == []


def test_the_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(state: str, *jobs: JobToRun) -> str:
        return join(environment.check(dry_run(root, *jobs)), state)

    sees(monkeypatch)
    assert "torch 2.13.0" in check("ok", TRAIN)
    assert "torch" not in check("ok", JobToRun(rule="audit"))
    with monkeypatch.context() as narrowed:
        narrowed.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
        assert "ONEDNN_DEFAULT_FPMATH_MODE=BF16 in the environment makes" in check("would stop", TRAIN)
        assert "fewer bits" not in check("ok", JobToRun(rule="tokenize")), "nothing is multiplied"
    monkeypatch.setattr(gpu, "ask_torch", lambda: {"fault": "ImportError: libcudart.so.13"})
    assert "(ImportError: libcudart.so.13)" in check("would stop", TRAIN)
    find = environment.importlib.util.find_spec
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None if name == "numpy" else find(name))
    assert "tokenize imports numpy" in check("would stop", JobToRun(rule="tokenize"))
    monkeypatch.setattr(sys, "version_info", (3, 11, 1))
    assert "is older than 3.11.2;" in check("would stop")


def test_an_executor_that_is_not_installed() -> None:
    refused = "snakemake: error: argument --executor/-e: invalid choice: 'slurm' (choose from 'local', 'dryrun')"
    assert "snakemake-executor-plugin-slurm is not installed" in join(environment.check_executor(refused), "would stop")
    assert environment.check_executor("another sentence") == []
