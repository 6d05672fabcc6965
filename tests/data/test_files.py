"""Files are whole or absent, and of the mode that any new file has."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plumbline import files
from plumbline.files import atomic, atomic_write_text


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_any_new_file_has(tmp_path: Path, umask: int) -> None:
    with atomic(tmp_path / "deep" / "a.bin") as file:
        file.write(b"x")
    with atomic(tmp_path / "a.txt", "w") as file:
        file.write("é\r\n")
    assert mode(tmp_path / "deep" / "a.bin") == mode(tmp_path / "a.txt") == 0o666 & ~umask
    assert (tmp_path / "a.txt").read_bytes() == "é\r\n".encode()


def test_a_library_that_wants_a_name_gets_one(tmp_path: Path, umask: int) -> None:
    """Safetensors puts a file of its own, with mode 0600, in the place of the one it is told."""
    path = tmp_path / "model.safetensors"
    with atomic(path) as file:
        save_file({"weight": np.arange(3)}, file.name)
    assert mode(path) == 0o666 & ~umask
    assert load_file(path)["weight"].tolist() == [0, 1, 2]
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    atomic_write_text(path, "before")
    with pytest.raises(KeyboardInterrupt), atomic(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_and_its_name_are_synced_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, name=name, original=original: (done.append(name), original(*given))[1]
        )
    with atomic(tmp_path / "a") as file:
        file.write(b"x")
        assert done == []
    assert done == ["fsync", "replace", "fsync"]


def test_threads_do_not_disturb_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask belongs to the process: whoever sets it, even for a moment, sets it for every thread."""
    monkeypatch.setattr(files.os, "umask", lambda _: pytest.fail("the umask was changed"))
    path = tmp_path / "a.txt"
    texts = [str(number) * 10_000 for number in range(8)]
    threads = [threading.Thread(target=atomic_write_text, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]
