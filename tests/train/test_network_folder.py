"""Attacks on a run whose state lies on a network's file system: no locks, no hard links, folders that cannot be synced,
another machine's files seen late. (A folder of the test's own, by FUSE: tests/core/fuse_folder.)"""

from __future__ import annotations

import os
import posix
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.core import fingerprint_file, process_record
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text, fsync_directory
from plumbline.operate.locks import workflow_lock
from plumbline.train.checkpoint import run_lock
from tests.core.fuse_folder import mount_folder
from tests.model_specs import run_spec
from tests.train.small_runs import PROCESSES, products, read, settings
from tests.train.test_run_lock import take


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A folder of one machine, and its rules."""
    with mount_folder(tmp_path / "backing", tmp_path / "here", locks=False) as rules:
        yield tmp_path / "here", rules


def test_a_folder_that_cannot_be_synced_takes_files(folder: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """As on SMB; another error of the same call is one."""
    place, rules = folder
    monkeypatch.setattr(os, "fsync", posix.fsync)  # which other tests do without
    rules.write_text("fsyncdir * EINVAL\n")
    atomic_write_text(place / "file", "whole")
    assert (place / "file").read_text() == "whole"
    rules.write_text("fsyncdir * EIO\n")
    with pytest.raises(OSError, match="Errno 5"):
        fsync_directory(place)


def test_a_record_is_put_back_without_hard_links(folder: tuple[Path, Path]) -> None:
    place, rules = folder
    rules.write_text("link * EPERM\nlock * ENOLCK\n")
    with take(place) as lock:
        path = place / run_lock.NAME
        assert not process_record.remove(path, {"token": "another one's, which was judged to be dead"})
        lock.check()
    assert not path.exists()


def test_a_fingerprint_that_cannot_be_read_is_not_another_one(folder: tuple[Path, Path]) -> None:
    """It was taken for missing, and what it describes was made again."""
    place, rules = folder
    (place / "tokenizer.json").write_text("{}")
    fingerprint_file.write(place / "tokenizer.json", "code-asked")
    rules.write_text("open */tokenizer.fingerprint.json ESTALE\n")
    with pytest.raises(PlumblineError, match=r"tokenizer\.fingerprint\.json cannot be read \(Stale file handle\)"):
        fingerprint_file.read(fingerprint_file.sidecar_path(place / "tokenizer.json"))
    rules.write_text("")
    record = fingerprint_file.read(fingerprint_file.sidecar_path(place / "tokenizer.json"))
    assert record is not None and record["fingerprint"] == "code-asked"


def test_a_workflow_holds_its_folder_without_locks(folder: tuple[Path, Path]) -> None:
    """By its record alone; where that cannot be written, a sentence names it."""
    place, rules = folder
    with workflow_lock.hold(place, "snakemake"):
        assert not process_record.read(place / workflow_lock.RECORD)["locked"]  # type: ignore[index]
        with pytest.raises(PlumblineError, match="is held by process"), workflow_lock.hold(place, "snakemake"):
            pass
    rules.write_text(f"create */{workflow_lock.RECORD} EROFS\n")
    with (
        pytest.raises(PlumblineError, match=r"plumbline-workflow\.json cannot be written \(Read-only file system\)"),
        workflow_lock.hold(place, "snakemake"),
    ):
        pass


def on_machine(name: str, *arguments: Any) -> None:
    """Train as a process of another machine."""
    from tests.train.child_processes import child

    process_record.machine = lambda: name
    child(*arguments)


def start(name: str, packs: Path, place: Path, steps: int) -> Any:
    spec = run_spec(train__steps=steps)
    chosen = settings(packs, place, checkpoint_steps=1, stale_lock_seconds=2.0, lock_wait_seconds=60.0)
    process = PROCESSES.Process(target=on_machine, args=(name, spec.to_json(), chosen, {}, None))
    process.start()
    return process


@pytest.fixture
def two(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """One folder as two machines see it."""
    backing, places = tmp_path / "backing", {name: tmp_path / name for name in ("one", "other")}
    with (
        mount_folder(backing, places["one"], late=0.5, locks=False),
        mount_folder(backing, places["other"], late=0.5, locks=False),
    ):
        yield places


def test_two_machines_do_not_train_at_once(packs: Path, two: dict[str, Path], undisturbed: Path) -> None:
    """The second one waits, and finds the run at its end."""
    trainers = [start(name, packs, place, 12) for name, place in two.items()]
    for trainer in trainers:
        trainer.join(120)
    assert [trainer.exitcode for trainer in trainers] == [0, 0]
    state = two["one"] / "state"
    assert [entry.get("ended") for entry in read(state / "starts.json")] == ["completed"]
    assert products(two["one"]) == products(undisturbed)
