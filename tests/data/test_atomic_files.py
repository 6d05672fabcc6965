"""Files are whole or absent, and of the mode that any new file has."""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plumbline.core import files
from plumbline.core.files import atomic_write_text, open_atomically
from plumbline.data import documents, pack


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_any_new_file_has(tmp_path: Path, umask: int) -> None:
    with open_atomically(tmp_path / "deep" / "a.bin") as file:
        file.write(b"x")
    assert mode(tmp_path / "deep" / "a.bin") == 0o666 & ~umask


def test_a_library_that_wants_a_name_gets_one(tmp_path: Path, umask: int) -> None:
    """Safetensors puts its own file, with mode 0600, in the place of the one it is given."""
    path = tmp_path / "model.safetensors"
    with open_atomically(path) as file:
        save_file({"weight": np.arange(3)}, file.name)
    assert mode(path) == 0o666 & ~umask
    assert load_file(path)["weight"].tolist() == [0, 1, 2]
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    atomic_write_text(path, "before")
    with pytest.raises(KeyboardInterrupt), open_atomically(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_and_its_name_are_synced_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, original=original: (done.append(name), original(*args))[1]
        )
    with open_atomically(tmp_path / "a") as file:
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


def limit_file_size(size: int) -> Callable[[], None]:
    """For a process that may write no file of more bytes: as a full disk, an error of the write."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize(
    ("length", "file"),
    [(50, r"\.local-\w+/train\.jsonl[.\w]*"), (20_000, r"\.local-\w+/(train|validation)/[0-9a-f]{2}")],
)
def test_no_room_is_a_sentence_that_names_the_file(tmp_path: Path, length: int, file: str) -> None:
    (tmp_path / "texts").mkdir()
    rows = [json.dumps({"id": str(number), "text": "x" * length}) for number in range(20_000 // length)]
    (tmp_path / "texts/a.jsonl").write_text("\n".join([*rows, *('{"text": "y"}' for _ in range(40))]))
    args = [
        *["--corpus", "mine", "--documents-source", "local", "--local-texts-folder"],
        str(tmp_path / "texts"),
        "--out",
        str(tmp_path / "out"),
    ]
    process = subprocess.run(
        [sys.executable, "-m", "plumbline.data.documents", *args, "--validation-percent", "20"],
        capture_output=True, text=True, preexec_fn=limit_file_size(10_000),
    )  # fmt: skip
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert re.search(rf"^error: {tmp_path}/out/{file}: .*\(File too large\); free some", process.stderr, re.M)
    # What was read is kept for the next start, in its own folder.
    names = {path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".local-")}
    assert names <= {".lock", "validation.jsonl"}


@pytest.mark.parametrize("value", ["-1", "x", "1.5"])
def test_an_id_that_is_none_is_named(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    for verb, args in ((documents, ["--corpus", "m", "--documents-source", "local"]), (pack, [])):
        with pytest.raises(SystemExit):
            verb.main([*args, f"--document-end={value}"])
        assert f"argument --document-end: '{value}' is no id" in capsys.readouterr().err


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")], ids=["a pipe", "a device"])
def test_a_pipe_and_a_device_are_written_and_stay(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(path := tmp_path / "out")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    atomic_write_text(path, "text")
    assert os.read(reader, 9) == (b"text" if path.is_fifo() else b"")
    assert not path.is_file() and list(tmp_path.iterdir()) == [path]


def test_an_open_file_is_written_by_its_name_in_dev(tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as file:
        atomic_write_text(f"/dev/fd/{file.fileno()}", "text")
    assert (tmp_path / "out").read_text() == "text"
