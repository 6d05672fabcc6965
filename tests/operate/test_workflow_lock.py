"""One Snakemake holds a directory; what a dead one left goes, what a living one holds never does."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core import locks, process_record
from plumbline.core.errors import PlumblineError
from plumbline.operate.locks import workflow_lock

HOLD = """
import sys
from pathlib import Path
from plumbline.operate.locks import workflow_lock
with workflow_lock.hold(Path(".snakemake"), "snakemake all"):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with Snakemake's lock in it."""
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.input.lock").write_text("a\n")
    (locks / "0.output.lock").write_text("b\n")
    return tmp_path


def lies_on(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The mount table has everything on a file system of this kind."""
    mounted = [SimpleNamespace(mountpoint="/", fstype=kind)]
    monkeypatch.setattr(workflow_lock.psutil, "disk_partitions", lambda all: mounted)


@pytest.fixture
def holder(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds that directory."""
    for path in (directory / ".snakemake" / "locks").glob("*"):
        path.unlink()
    command = [sys.executable, "-c", HOLD]
    process = subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    lock(directory)
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_unsupported(*arguments: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(locks.fcntl, "flock", raise_unsupported)


def is_locked(directory: Path) -> bool:
    return any((directory / ".snakemake" / "locks").glob("*.lock"))


def lock(directory: Path) -> None:
    (directory / ".snakemake" / "locks" / "0.input.lock").write_text("a\n")


def record(directory: Path, **changed: Any) -> Path:
    """What a Snakemake in another process namespace of this kernel, which had the kernel's lock, wrote down."""
    own = process_record.identity() | {
        "machine": "other/namespace",
        "boot": process_record.boot() or "x",
        "locked": True,
        "since": 0,
    }
    path = directory / ".snakemake" / workflow_lock.RECORD
    path.write_text(json.dumps(own | changed))
    return path


def test_without_a_lock_nothing_happens(tmp_path: Path) -> None:
    assert workflow_lock.clear(tmp_path) is None


@pytest.mark.parametrize("gone", [{"pid": 2**22 + 1}, {"process_started": "1"}], ids=["no process", "another's number"])
def test_a_lock_whose_holder_ran_here_and_is_gone_goes(directory: Path, gone: dict[str, Any], without_locks) -> None:
    path = record(directory, machine=process_record.machine(), **gone)
    assert "no longer runs (process" in (workflow_lock.clear(directory) or "")
    assert not is_locked(directory) and not path.exists()


def test_who_holds_the_directory_is_named_and_not_overruled(directory: Path, holder: subprocess.Popen[bytes]) -> None:
    for attempt in (workflow_lock.clear, lambda _: workflow_lock.overrule(directory / ".snakemake"), hold):
        with pytest.raises(PlumblineError, match=rf"process {holder.pid} on .* \(snakemake all\), .*make"):
            attempt(directory)
    assert is_locked(directory)
    holder.kill()
    holder.wait()
    hold(directory)
    assert not is_locked(directory) and not (directory / ".snakemake" / workflow_lock.RECORD).exists()


def hold(directory: Path) -> None:
    with workflow_lock.hold(directory / ".snakemake", "snakemake all"):
        pass


def test_nor_where_the_file_system_has_no_locks(
    directory: Path, without_locks, holder: subprocess.Popen[bytes]
) -> None:
    for attempt in (workflow_lock.clear, hold):
        with pytest.raises(PlumblineError, match=f"held by process {holder.pid}"):
            attempt(directory)
    assert is_locked(directory)


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "login2", "boot": "another"}, {"boot": "another"}, {"locked": False}],
    ids=["another host", "another boot of a shared file system", "another namespace, and it had no lock"],
)
def test_an_unseen_holder_stays(directory: Path, elsewhere: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    lies_on(monkeypatch, "nfs4")
    path = record(directory, **elsewhere)
    for attempt in (workflow_lock.clear, hold):
        with pytest.raises(PlumblineError, match=r"held by process \d+ on .*not visible from here\. If .* --unlock$"):
            attempt(directory)
    assert is_locked(directory) and path.exists()
    workflow_lock.overrule(directory / ".snakemake")  # a person's word
    assert not path.exists()


def test_the_kernel_knows_who_is_gone(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lies_on(monkeypatch, "ext4")
    for changed in ({}, {"boot": "before the power cut"}):
        lock(directory)
        record(directory, **changed)
        assert workflow_lock.clear(directory) and not is_locked(directory)


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_a_holder_in_another_namespace_stays(directory: Path, holder: subprocess.Popen[bytes]) -> None:
    """Its number is free there, or another's."""
    inside = ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no process namespaces here")
    command = [*inside, sys.executable, "-m", "plumbline.operate.locks.workflow_lock"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 1 and f"held by process {holder.pid}" in done.stderr
    assert is_locked(directory)


@pytest.mark.parametrize(
    "content, fault",
    [
        ("", "is empty"),
        ("{", "is not JSON"),
        ("[]", "holds one list instead of a record"),
        ('{"host": "a", "machine": "b"}', "says no pid"),
        ('{"host": "a", "machine": "b", "pid": "12"}', "has a pid of '12'"),
        ('{"host": "a", "machine": "b", "pid": 1, "since": NaN}', "holds NaN, which is no number"),
        ("[" * 100_000, "is nested too deeply to be read"),
        (None, "is a folder"),
    ],
)
def test_a_broken_record_is_named_and_nobody_is_overruled_by_it(
    directory: Path, content: str | None, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = directory / ".snakemake" / workflow_lock.RECORD
    path.mkdir() if content is None else path.write_text(content)
    lies_on(monkeypatch, "nfs4")
    with pytest.raises(PlumblineError, match=f"{workflow_lock.RECORD} {fault}, so it is unknown .*--unlock"):
        workflow_lock.clear(directory)
    assert is_locked(directory)
    # Where no other host can have it, the kernel's lock tells; what is broken is kept to be checked.
    lies_on(monkeypatch, "ext4")
    assert f"{path} {fault}, and is set aside" in (workflow_lock.clear(directory) or "")
    assert not is_locked(directory) and path.with_name(f"{workflow_lock.RECORD}.damaged").exists()


def test_a_lock_that_nobody_signed_is_not_removed(directory: Path) -> None:
    with pytest.raises(PlumblineError, match=r"process it is .*--unlock"):
        workflow_lock.clear(directory)
    assert is_locked(directory)


def test_who_lost_directory_to_person_leaves_next_ones_record(tmp_path: Path) -> None:
    persistence = tmp_path / ".snakemake"
    persistence.mkdir()
    with workflow_lock.hold(persistence, "snakemake all"):
        path = record(tmp_path, pid=os.getppid(), token="another")
    assert path.exists()


def test_the_slower_of_two_clears_nothing(
    directory: Path, without_locks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(directory, machine=process_record.machine(), pid=2**22 + 1)
    stale, read = process_record.read(path), process_record.read
    record(directory, token="the faster one's")
    monkeypatch.setattr(process_record, "read", lambda file: stale if file == path else read(file))
    with pytest.raises(PlumblineError, match="is held by"):
        workflow_lock.clear(directory)
    assert is_locked(directory) and "the faster one's" in path.read_text()
