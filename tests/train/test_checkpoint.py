"""Checkpoints: whole or not there, damaged ones found, the finite one kept, a full disk survived."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.train.checkpoint.checkpoint_folders import METADATA, RollingCheckpoints, damage
from plumbline.train.disk_faults import guard_write


def write(checkpoints: RollingCheckpoints, step: int, *, finite: bool = True) -> Path:
    temporary = checkpoints.begin(step)
    (temporary / "model.safetensors").write_bytes(bytes(range(256)) * 8)
    (temporary / "shards").mkdir()
    (temporary / "shards" / "rank-00000.safetensors").write_bytes(b"piece")
    return checkpoints.finish(temporary, step, {"finite": finite})


def test_a_checkpoint_is_found_again(tmp_path: Path) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=3)
    assert checkpoints.find_newest() is None and not checkpoints.has_any()
    write(checkpoints, 5)
    path = write(checkpoints, 12)
    checkpoint = checkpoints.find_newest()
    assert checkpoint is not None and (checkpoint.path, checkpoint.step) == (path, 12)
    assert sorted(checkpoint.metadata["files"]) == ["model.safetensors", "shards/rank-00000.safetensors"]


def test_beyond_seven_digits_the_newest_is_still_the_newest(tmp_path: Path) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=3)
    for step in (9_999_999, 10_000_000):
        write(checkpoints, step)
    assert checkpoints.find_newest().step == 10_000_000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "harm", "message"),
    [
        ("model.safetensors", lambda content: content[:-1], "has 2047 bytes, not 2048"),
        ("model.safetensors", lambda content: content[:7] + b"\x80" + content[8:], "its checksum"),
        ("shards/rank-00000.safetensors", lambda content: None, "shards/rank-00000.safetensors is missing"),
        (METADATA, lambda content: None, "metadata.json is missing"),
        (METADATA, lambda content: content[:40], "metadata.json cannot be read"),
        (METADATA, lambda content: content.replace(b'"step": 9', b'"step": 8'), "as it was written"),
    ],
)
def test_damage_is_named_and_an_earlier_checkpoint_used(tmp_path: Path, name, harm, message, capfd) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=3)
    write(checkpoints, 3)
    path = write(checkpoints, 9)
    changed = harm((path / name).read_bytes())
    if changed is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(changed)
    assert message in (damage(path) or "")
    assert checkpoints.find_newest().step == 3  # type: ignore[union-attr]
    assert message in capfd.readouterr().err and (tmp_path / "step-0000009.damaged").is_dir()
    write(checkpoints, 9)  # the place is free again
    assert checkpoints.find_newest().step == 9  # type: ignore[union-attr]


def test_the_newest_are_kept_and_the_newest_finite_one_always(tmp_path: Path) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=2)
    for step, finite in ((1, True), (2, True), (3, False), (4, False), (5, False)):
        write(checkpoints, step, finite=finite)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-0000002", "step-0000004", "step-0000005"]
    assert checkpoints.newest_finite().step == 2  # type: ignore[union-attr]
    write(checkpoints, 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-0000005", "step-0000006"]


def test_leftovers_of_a_killed_trainer_are_not_checkpoints(tmp_path: Path) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=2)
    (checkpoints.begin(7) / "model.safetensors").write_bytes(b"half")
    assert checkpoints.find_newest() is None and not checkpoints.has_any()
    write(checkpoints, 8)
    assert [path.name for path in tmp_path.iterdir()] == ["step-0000008"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_told_apart_from_other_faults(tmp_path: Path, number: int) -> None:
    (tmp_path / ".step-0000003").mkdir()

    def fail() -> None:
        try:
            raise OSError(number, os.strerror(number))
        except OSError as error:
            raise RuntimeError("writing failed") from error

    with pytest.raises(PlumblineError, match=f"space to save under {tmp_path}"):
        guard_write(tmp_path, fail)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError):
        guard_write(tmp_path, lambda: 1 / 0)
    with pytest.raises(PlumblineError, match="no disk space"):  # as safetensors reports it
        guard_write(tmp_path, lambda: (_ for _ in ()).throw(RuntimeError(f"I/O error: full (os error {number})")))
