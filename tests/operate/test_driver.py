"""A stale lock is removed; a held one never is."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from plumbline.cli import PlumblineError
from plumbline.operate import driver


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with Snakemake's lock in it."""
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.input.lock").write_text("a\n")
    (locks / "0.output.lock").write_text("b\n")
    return tmp_path


def locked(directory: Path) -> bool:
    return any((directory / ".snakemake" / "locks").glob("*.lock"))


def record(directory: Path, **holder: object) -> Path:
    path = directory / ".snakemake" / driver.HOLDERS / "a.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": 0.0} | holder))
    return path


def test_without_a_lock_nothing_happens(tmp_path: Path) -> None:
    assert not driver.clear_stale_lock(tmp_path)


def test_a_lock_that_nobody_can_hold_goes(directory: Path) -> None:
    """Its holder's record names a process that is gone, or a number that another process was given since."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for holder in ({}, {"pid": gone.pid}, {"pid": os.getpid(), "started": psutil.Process().create_time() - 60}):
        (directory / ".snakemake/locks/0.input.lock").write_text("a\n")
        path = record(directory, **holder)
        assert driver.clear_stale_lock(directory)
        assert not locked(directory) and not path.exists()


def test_a_recorded_holder_that_lives_is_not_overruled(directory: Path) -> None:
    driver.hold(directory / ".snakemake")
    with pytest.raises(PlumblineError, match=rf"is held by process {os.getpid()}; wait for it or stop it\. .*--unlock"):
        driver.clear_stale_lock(directory)
    driver.release(directory / ".snakemake")
    assert driver.clear_stale_lock(directory) and not locked(directory)


def test_nor_is_one_on_another_host(directory: Path) -> None:
    path = record(directory, host="login2", pid=1)
    with pytest.raises(PlumblineError, match=rf"process 1 on the host login2 \(recorded in {path}\)"):
        driver.clear_stale_lock(directory)
    driver.release(directory / ".snakemake")
    assert locked(directory) and path.exists(), "a holder forgets itself alone"


def test_nor_is_a_snakemake_that_has_not_written_itself_down_yet(directory: Path, tmp_path_factory) -> None:
    """Between taking the lock and its first job; seen among the processes of this host, by its working directory."""
    script = tmp_path_factory.mktemp("bin") / "snakemake"
    script.write_text("import sys; print(flush=True); sys.stdin.read()")
    process = subprocess.Popen(
        [sys.executable, script, "all"], cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None and process.stdout.readline()
        with pytest.raises(PlumblineError, match=rf"is held by process {process.pid} \(.*snakemake all"):
            driver.clear_stale_lock(directory)
        assert not driver.holders(directory.parent), "it holds its own directory alone"
    finally:
        process.communicate()
    assert driver.clear_stale_lock(directory)
