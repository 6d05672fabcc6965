"""What a run took of memory at its most: by start, of its own process beside its packages, and of a GPU what torch
counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.formats import format_peak_memory
from plumbline.model.distributed import RankGroup
from plumbline.train.monitoring import peak_memory
from tests.model_specs import run_spec
from tests.train.small_runs import read, settings, train
from tests.train.test_pretrain import StopAt

PROCESS = "resident, beside its packages"


def test_the_manifest_has_the_largest(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([300_000_000, 200_000_000])
    monkeypatch.setattr(peak_memory, "count_resident_bytes", lambda: 50_000_000)
    monkeypatch.setattr(peak_memory, "read_peak_resident_bytes", lambda: 50_000_000 + next(sizes))
    assert train(run_spec(), settings(packs, tmp_path), StopAt(12)) == EXIT_RUN_AGAIN
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    manifest = read(tmp_path / "out/manifest.json")
    assert [start["peak_memory_bytes"] for start in manifest["starts"]] == [300_000_000, 200_000_000]
    assert (manifest["peak_memory_bytes"], manifest["peak_memory_of"]) == (300_000_000, PROCESS)
    assert format_peak_memory(manifest) == "300 MB resident, beside its packages"


def test_starts_that_said_nothing_are_not_taken_for_small_ones() -> None:
    killed = {"step": 0}
    assert peak_memory.find_largest_peak([killed]) == {"peak_memory_bytes": None, "peak_memory_of": None}
    assert format_peak_memory(peak_memory.find_largest_peak([])) == format_peak_memory({}) == "not recorded"
    peak = {"peak_memory_bytes": 7, "peak_memory_of": PROCESS}
    assert peak_memory.find_largest_peak([killed, killed | peak, killed]) == peak


def test_a_process_is_not_as_large_as_the_one_that_started_it() -> None:
    memory = bytearray(300_000_000)
    memory[::4096] = b"1" * len(memory[::4096])
    command = "from plumbline.train.monitoring import peak_memory; print(peak_memory.read_peak_resident_bytes())"
    process = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert (
        5e6
        < int(process.stdout)
        < 1e8
        < len(memory)
        <= peak_memory.count_resident_bytes()
        <= peak_memory.read_peak_resident_bytes()
    )


def test_gpu_memory_is_what_torch_allocated_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", devices.append)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 5)
    alone = RankGroup(rank=0, world=1, device=torch.device("cuda", 1))
    peak_memory.begin(alone)
    assert devices == [alone.device]
    assert peak_memory.report_peak(alone, 3) == {
        "peak_memory_bytes": 5,
        "peak_memory_of": "allocated by torch on the device",
    }


def test_the_largest_of_the_ranks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak_memory, "read_peak_resident_bytes", lambda: 5)
    monkeypatch.setattr(RankGroup, "max", lambda self, values: [max(value, 9.0) for value in values])
    first = RankGroup(rank=0, world=2, device=torch.device("cpu"))
    assert peak_memory.report_peak(first, 0)["peak_memory_bytes"] == 9
    assert peak_memory.report_peak(first, 1, alone=True)["peak_memory_bytes"] == 4, "the others may be gone"
