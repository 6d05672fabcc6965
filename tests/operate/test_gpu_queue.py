"""Jobs on fake devices: none shares one, a killed job frees its own, and those that are too many wait."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate import gpu_queue

#: Claims each of its devices by a file that must not be there, stays a while, and writes down what it saw.
JOB = """
import os, sys, time
seen = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
for name in seen:
    os.close(os.open(f"using-{name}", os.O_CREAT | os.O_EXCL))
time.sleep(float(sys.argv[1]))
with open("seen", "a") as file:
    file.write(",".join(seen) + "\\n")
for name in seen:
    os.remove(f"using-{name}")
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a job on one of three devices."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "job.py").write_text(JOB)

    def begin(seconds: float, number: int = 1, names: str = "0,1,2") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "plumbline.operate.gpu_queue", "--devices", str(number)]
        process = subprocess.Popen(
            [*command, sys.executable, "job.py", str(seconds)],
            cwd=tmp_path,
            env=os.environ | {"PLUMBLINE_DEVICES": names, "PLUMBLINE_DEVICE_LOCKS": str(tmp_path / "locks")},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def read_devices(folder: Path) -> list[str]:
    return (folder / "seen").read_text().split()


def test_jobs_at_once_never_share_a_device(start: Start, tmp_path: Path) -> None:
    jobs = [start(0.3) for _ in range(7)]
    for job in jobs:
        assert job.wait(30) == 0, job.communicate()[1]
    assert len(read_devices(tmp_path)) == 7 and set(read_devices(tmp_path)) == {"0", "1", "2"}


def test_a_job_waits_for_a_device_that_a_killed_job_frees(start: Start, tmp_path: Path) -> None:
    first = start(60, names="GPU-1a2b")
    until((tmp_path / "using-GPU-1a2b").exists)
    second = start(0, names="GPU-1a2b")
    time.sleep(3 * gpu_queue.EVERY)
    assert second.poll() is None, "it began on a device that was taken"
    first.send_signal(signal.SIGKILL)
    first.wait()
    (tmp_path / "using-GPU-1a2b").unlink()
    assert second.wait(20) == 0, second.communicate()[1]
    assert read_devices(tmp_path) == ["GPU-1a2b"]


def test_jobs_that_need_two_of_three_do_not_block_each_other(start: Start, tmp_path: Path) -> None:
    jobs = [start(0.1, number) for number in (2, 1, 2, 3, 2, 1)]
    for job in jobs:
        assert job.wait(30) == 0, job.communicate()[1]
    assert sorted(line.count(",") + 1 for line in read_devices(tmp_path)) == [1, 1, 2, 2, 2, 3]


def test_more_devices_than_there_are_is_an_error(start: Start) -> None:
    job = start(0, number=4)
    error = job.communicate()[1]
    assert job.returncode == 1 and error.startswith("error: --devices 4: this machine has 3 (0, 1, 2)")


@pytest.mark.parametrize("seconds", ["", "5m", "-5"])
def test_seconds_of_torchrun(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", seconds)
    job = start(0)
    error = job.communicate()[1]
    assert job.returncode == 1 and not (tmp_path / "seen").exists()
    assert error.startswith(f"error: TORCH_ELASTIC_SHUTDOWN_TIMEOUT={seconds} ") and "unset it" in error


def test_a_list_of_visible_devices_is_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUMBLINE_DEVICES", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, MIG-3f,-1,0")
    assert gpu_queue.list_devices() == ["2", "MIG-3f"]
    monkeypatch.setenv("PLUMBLINE_DEVICES", "5")
    assert gpu_queue.list_devices() == ["5"]
    for wrong, message in (("", "names no device"), ("1,1", "twice")):
        monkeypatch.setenv("PLUMBLINE_DEVICES", wrong)
        with pytest.raises(PlumblineError, match=message):
            gpu_queue.list_devices()


def test_otherwise_nvidia_smi_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("PLUMBLINE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlumblineError, match=r"cannot ask nvidia-smi .*PLUMBLINE_DEVICES"):
        gpu_queue.list_devices()
    command = tmp_path / "nvidia-smi"
    for script, expected in (("echo 0; echo 1", ["0", "1"]), ("echo No devices were found; exit 6", None)):
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(stat.S_IRWXU)
        if expected:
            assert gpu_queue.list_devices() == expected
        else:
            with pytest.raises(PlumblineError, match="says: No devices"):
                gpu_queue.list_devices()


def test_a_lock_folder_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLUMBLINE_DEVICE_LOCKS", str(tmp_path))
    assert gpu_queue.lock_folder() == tmp_path
    monkeypatch.setattr(gpu_queue.os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(PlumblineError, match="belongs to another user"):
        gpu_queue.lock_folder()
