"""Attacks by a file system that fails (EIO), goes away (ESTALE) or may only be read (EROFS) while a run goes on: it
ends as by a full disk, in a sentence that names the file, and no start of it counts against the run."""

from __future__ import annotations

import builtins
import errno
import os
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors import SafetensorError

from plumbline.core.errors import PlumblineError
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.run_lock import RunLock
from plumbline.train.checkpoint.training_state import SavedLoopState
from plumbline.train.monitoring.run_metrics import OnlineProbes, RunMetrics
from tests.model_specs import run_spec
from tests.train.small_runs import PROBES, products, read, settings, train


def failing(patch: pytest.MonkeyPatch, name: str, number: int, place: str) -> None:
    """Have `os.<name>` fail for files whose path matches `place`, as the kernel would: by a descriptor, without its
    name."""
    original = getattr(os, name)

    def call(target: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(target, int):
            path, paths = os.readlink(f"/proc/self/fd/{target}"), ()
        else:
            path, paths = os.fspath(rest[0] if name in ("rename", "replace") else target), (os.fspath(target),)
        if re.search(place, path):
            raise OSError(number, os.strerror(number), *paths)
        return original(target, *rest, **options)

    patch.setattr(os, name, call)


@pytest.mark.parametrize(
    ("operation", "number", "place", "message"),
    [
        ("fsync", errno.EIO, r"state/\.step-0000003/\.model", r"step-0000003/model\.safetensors cannot be .*Input/out"),
        ("rename", errno.EROFS, r"state/step-0000003$", "step-0000003 cannot be .*Read-only.*"),
        ("replace", errno.EIO, r"state/starts\.json$", r"state/starts\.json cannot be .*Input/output error"),
        ("pread", errno.EIO, r"/train\.bin$", r"/train\.bin cannot be .*Input/output error"),
        ("pread", errno.ESTALE, r"/validation\.bin$", r"/validation\.bin cannot be .*Stale file handle"),
    ],
)
def test_a_disk_that_fails_counts_against_no_run(
    packs: Path, tmp_path: Path, undisturbed: Path, operation: str, number: int, place: str, message: str
) -> None:
    chosen = settings(packs, tmp_path, checkpoint_steps=3, max_starts_without_progress=2)
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            failing(patch, operation, number, place)
            with pytest.raises(PlumblineError, match=message):
                train(run_spec(), chosen)
    if "starts" not in place:
        assert [entry["ended"] for entry in read(chosen.state / "starts.json")] == ["disk error"] * 2
    assert not (chosen.state / "run_lock.json").exists()
    assert train(run_spec(), chosen) == 0 and products(tmp_path) == products(undisturbed)


def test_a_folder_that_cannot_sync_ends_a_recorded_start(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The record is in its place when its folder's sync fails: the next start took it for a kill."""
    chosen = settings(packs, tmp_path, max_starts_without_progress=1)
    for _ in range(3):  # the first one comes no further than to the run's identity
        with monkeypatch.context() as patch:
            failing(patch, "fsync", errno.EIO, r"/state$")
            with pytest.raises(PlumblineError, match=rf"{chosen.state} cannot be .*Input/output error"):
                train(run_spec(), chosen)
    assert [entry.get("ended") for entry in read(chosen.state / "starts.json")] == ["disk error"] * 2
    assert train(run_spec(), chosen) == 0 and "killed" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("place", "newest"),
    [
        (".step-0000003/metrics.npy", ""),
        (".step-0000006/metrics.npy", "step-0000003"),
        ("points/.step-0000004/metadata.json", ""),  # nor does a run resume from the point at step 0
    ],
)
def test_no_room_for_a_new_file_names_it(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, newest: str
) -> None:
    original, begins = builtins.open, "/.".join(place.rsplit("/", 1))

    def full(path: Any, *rest: Any, **options: Any) -> Any:
        if f"state/{begins}" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return original(path, *rest, **options)

    monkeypatch.setattr(builtins, "open", full)
    with pytest.raises(PlumblineError) as caught:
        train(run_spec(probes=PROBES), settings(packs, tmp_path, checkpoint_steps=None if "points" in place else 3))
    state, intact = tmp_path / "state", f"; earlier checkpoints there are intact, up to {newest}" if newest else ""
    assert str(caught.value) == (
        f"no disk space to save under {state} ([Errno 28] No space left on device: '{state}/{place}'){intact}. "
        f"Free space and start the run again{': it resumes from them' if newest else ''}"
    )


@pytest.mark.parametrize(
    ("operation", "number", "place"),
    [
        ("mkdir", errno.EROFS, r"out/\.leaving"),
        ("fsync", errno.EIO, r"leaving-\w+/\.metrics\.parquet"),
        ("replace", errno.ESTALE, r"out/manifest\.json$"),
        ("fsync", errno.EIO, r"leaving-\w+/\.outcome"),
    ],
)
def test_outputs_on_a_disk_that_fails_are_left_by_the_next_start(
    packs: Path, tmp_path: Path, undisturbed: Path, operation: str, number: int, place: str
) -> None:
    chosen = settings(packs, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, operation, number, place)
        with pytest.raises(PlumblineError, match=rf"{tmp_path}/out/.* cannot be .*{os.strerror(number)}"):
            train(run_spec(), chosen)
    assert not (tmp_path / "out/outcome.json").exists() and not list(tmp_path.glob("out/.*"))
    assert train(run_spec(), chosen) == 0 and products(tmp_path) == products(undisturbed)


def test_outputs_that_could_not_be_left(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda path: flags)
    with pytest.raises(PlumblineError, match=rf"{tmp_path}/out cannot be .*Read-only.* or name"):
        train(run_spec(), settings(packs, tmp_path))
    assert not (tmp_path / "state/starts.json").exists()


def test_what_safetensors_says_of_a_disk_gets_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise SafetensorError("Error while serializing: I/O error: Input/output error (os error 5)")

    monkeypatch.setattr(weight_files, "save_file", fail)
    with pytest.raises(OSError, match=rf"Errno 5\] .*: '{tmp_path}/model\.safetensors'"):
        weight_files.write_weights(tmp_path / "model.safetensors", {})


def test_a_disk_fails_the_thread_that_reads_ahead(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.pread

    def pread(*args: int) -> bytes:
        if threading.current_thread().name.startswith("next batch"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*args)

    monkeypatch.setattr(os, "pread", pread)
    with pytest.raises(PlumblineError, match=r"/train\.bin cannot be read .*not damage"):
        train(run_spec(), settings(packs, tmp_path))
    (start,) = read(tmp_path / "state/starts.json")
    assert (start["ended"], start["ended_at"]) == ("disk error", 1)


def test_a_lock_that_cannot_be_read_was_taken_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it hinder the end of a trainer that cannot remove it: it ends with the trainer's process."""

    def fail(path: Path, *arguments: Any, **options: Any) -> Any:
        raise OSError(errno.EIO, "sick", str(path))

    with RunLock(tmp_path, limit=60.0, wait=0.0) as lock:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", fail)
            patch.setattr(Path, "read_bytes", fail)
            with pytest.raises(PlumblineError, match=r"run_lock\.json cannot be read .*sick"):
                lock.check()
        lock.check()
        monkeypatch.setattr(Path, "unlink", fail)


def test_a_shard_that_is_cut_short_while_it_is_read_kills_nobody(packs: Path, tmp_path: Path) -> None:
    """A file in memory that ends before its map does, or whose disk fails, ends a process by SIGBUS."""
    program = (
        "import os, sys; from plumbline.data.loader import Pack; pack = Pack(sys.argv[1]); pack.rows([0]); "
        "os.truncate(sys.argv[1].replace('json', 'bin'), 0); pack.rows([1])"
    )
    for name in ("validation.json", "validation.bin"):
        (tmp_path / name).write_bytes((packs / name).read_bytes())
    command = [sys.executable, "-c", program, str(tmp_path / "validation.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "validation.bin was cut short" in done.stderr


@pytest.mark.parametrize("steps", [40, 4000])
def test_numbers_that_find_no_room_are_told_with_their_file(tmp_path: Path, steps: int) -> None:
    """numpy by itself states that so many were "requested" and so many "written", or, where few are lost, nothing."""
    metrics = RunMetrics()
    for step in range(steps):
        metrics.add_training(step, 1.0, 1.0, 0.1, step)
    written = SavedLoopState(metrics=metrics, online=OnlineProbes(run_spec()), loop="{}")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
    try:
        with pytest.raises(OSError, match=rf"Errno {errno.EFBIG}\] .*: '{tmp_path}/metrics\.npy'"):
            written.write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
