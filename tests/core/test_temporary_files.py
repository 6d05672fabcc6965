"""What a killed process was writing has an owner: the next writer there removes it, and nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core import temporary_files
from plumbline.core.files import atomic_write_text, open_atomically

WRITER = """
import sys, time
from pathlib import Path
from plumbline.core import temporary_files
from plumbline.core.files import open_atomically
place = Path(sys.argv[1])
with temporary_files.make_folder(place / "archive.whl") as folder, open_atomically(place / "rows.npy") as file:
    (folder / "part").write_bytes(b"half")
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writing(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def list_temporary(folder: Path) -> dict[str, temporary_files.TemporaryName]:
    """What lies in a folder under a temporary name, by the name that it was to get."""
    return {name.target: name for path in folder.iterdir() if (name := temporary_files.parse(path.name))}


def test_only_the_files_of_owners_that_are_gone_are_removed(
    tmp_path: Path, writing: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {name.pid for name in list_temporary(tmp_path).values()} == {writing.pid}
    monkeypatch.setattr("plumbline.core.temporary_files._searched", set())
    atomic_write_text(tmp_path / "other.txt", "x")
    assert set(list_temporary(tmp_path)) == {"rows.npy", "archive.whl"}, "their owner runs"
    writing.send_signal(signal.SIGKILL)
    writing.wait()
    assert all(name.is_abandoned for name in list_temporary(tmp_path).values())
    # Of another machine (or boot), whose process ids say nothing here, and of a process that has a dead one's number.
    machine = list_temporary(tmp_path)["rows.npy"].machine
    elsewhere = next(tmp_path.glob(".rows.npy.*")).name.split("_")
    elsewhere[0] = ".rows.npy.00000000"
    (tmp_path / "_".join(elsewhere)).write_bytes(b"theirs")
    again = f".again.npy.{machine}_{os.getpid()}_1_abcd"
    (tmp_path / again).write_bytes(b"of the number's earlier process")
    monkeypatch.setattr("plumbline.core.temporary_files._searched", set())
    with open_atomically(tmp_path / "rows.npy") as file:
        file.write(b"whole")
        ours = Path(file.name)
        assert ours.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"rows.npy", "other.txt", "_".join(elsewhere)}
    assert not ours.exists() and (tmp_path / "rows.npy").read_bytes() == b"whole"
