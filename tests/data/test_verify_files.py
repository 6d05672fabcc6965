"""Shards are read before training, once; damage is refused."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import verify_files
from plumbline.data.loader import Pack, verify_once
from tests.data.conftest import Stages


@pytest.fixture
def packs(stages: Stages, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stages.packs, tmp_path / "packs"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that have been hashed."""
    names: list[str] = []
    original = verify_files.read

    def note_read(file: IO[bytes], dtype: np.dtype) -> tuple[str, int]:
        names.append(Path(file.name).name)
        return original(file, dtype)

    monkeypatch.setattr(verify_files, "read", note_read)
    return names


def shards(path: Path) -> list[str]:
    return [Path(entry["file"]).name for entry in Pack(path).manifest["shards"]]


def flip(shard: Path) -> None:
    """Other bytes, the same size."""
    whole = shard.read_bytes()
    shard.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])


def test_the_second_time_nothing_is_read(packs: Path, read: list[str]) -> None:
    base, large = packs / "base.json", packs / "large.json"
    assert verify_once(Pack(base)) == 3
    assert read == shards(base)
    assert verify_once(Pack(base)) == 0
    assert len(read) == 3
    # The large pack shares the base pack's shards: only the others are read.
    assert verify_once(Pack(large)) == len(shards(large)) - 3 > 0
    assert sorted(read) == shards(large)
    assert [verify_once(Pack(path)) for path in (base, large)] == [0, 0]


def test_other_bytes_are_refused(packs: Path) -> None:
    path = packs / "base.json"
    verify_once(Pack(path))
    flip(packs / "train" / "shard-00001.bin")
    for _ in range(2):
        with pytest.raises(PlumblineError, match=r"shard-00001\.bin of .*base\.json .* `pack`"):
            verify_once(Pack(path))


def test_ids_that_the_tokenizer_does_not_have_are_refused(packs: Path) -> None:
    """Their checksum fits, as another program's pack's does: on a GPU they would end the process without a word."""
    path, shard = packs / "base.json", packs / "train" / "shard-00001.bin"
    manifest = json.loads(path.read_text())
    verify_once(Pack(path))
    fingerprint_file.write_facts(path, manifest | {"vocabulary": 300})
    with pytest.raises(PlumblineError, match=r"shard-\d+\.bin of .* holds the id 3\d\d, .* has 300 entries"):
        verify_once(Pack(path))
    shard.write_bytes(b"\xff\xff" + shard.read_bytes()[2:])
    manifest["shards"][1]["sha256"] = sha256_file(shard)
    fingerprint_file.write_facts(path, manifest)
    with pytest.raises(PlumblineError, match=r"shard-00001\.bin.*id 65535.*has 320"):
        verify_once(Pack(path))


def test_a_date_put_back_does_not_hide_other_bytes(packs: Path) -> None:
    path, shard = packs / "base.json", packs / "train" / "shard-00002.bin"
    verify_once(Pack(path))
    before = shard.stat()
    time.sleep(0.01)  # a file's times move with the kernel's clock ticks
    flip(shard)
    os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (shard.stat().st_mtime_ns, shard.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    with pytest.raises(PlumblineError, match="is damaged"):
        verify_once(Pack(path))


def test_a_touched_shard_is_read_again_and_taken(packs: Path, read: list[str]) -> None:
    path, shard = packs / "base.json", packs / "train" / "shard-00001.bin"
    verify_once(Pack(path))
    read.clear()
    os.utime(shard)
    assert verify_once(Pack(path)) == 1
    assert read == ["shard-00001.bin"]
    assert verify_once(Pack(path)) == 0


def test_what_was_read_before_the_damage_is_remembered(packs: Path) -> None:
    path = packs / "base.json"
    flip(packs / "train" / "shard-00002.bin")
    with pytest.raises(PlumblineError, match="is damaged"):
        verify_once(Pack(path))
    flip(packs / "train" / "shard-00002.bin")
    assert verify_once(Pack(path)) == 1


def test_a_pack_made_again_is_not_vouched_for(packs: Path) -> None:
    """The same files under a manifest that states that they should be others."""
    path = packs / "base.json"
    verify_once(Pack(path))
    manifest = json.loads(path.read_text())
    manifest["shards"][0]["sha256"] = "0" * 64
    fingerprint_file.write_facts(path, manifest)
    with pytest.raises(PlumblineError, match=r"shard-00000\.bin .* is damaged"):
        verify_once(Pack(path))


@pytest.mark.parametrize("content", ["{", "[]", '{"train/shard-00000.bin": 3}', ""])
def test_a_record_that_is_none_vouches_for_nothing(packs: Path, content: str) -> None:
    path = packs / "base.json"
    verify_once(Pack(path))
    (record,) = (packs / ".verified").glob("*.json")
    assert set(json.loads(record.read_text())["train/shard-00000.bin"]) == {
        "inode",
        "size",
        "mtime_ns",
        "ctime_ns",
        "sha256",
        "vocabulary",
    }
    record.write_text(content)
    assert verify_once(Pack(path)) == 3
    assert verify_once(Pack(path)) == 0


def test_another_machine_reads_for_itself(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packs / "base.json"
    verify_once(Pack(path))
    monkeypatch.setattr(verify_files.platform, "node", lambda: "another")
    assert verify_once(Pack(path)) == 3
    monkeypatch.undo()
    assert verify_once(Pack(path)) == 0


def test_a_folder_that_cannot_be_written_costs_a_message(packs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in its place stands for a read-only disk, which the tests' user may not be held back by."""
    (packs / ".verified").write_text("")
    for _ in range(2):
        assert verify_once(Pack(packs / "base.json")) == 3
        assert "cannot record" in capsys.readouterr().err
    flip(packs / "train" / "shard-00000.bin")
    with pytest.raises(PlumblineError, match="is damaged"):
        verify_once(Pack(packs / "base.json"))


def test_a_full_disk_costs_a_message(
    packs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(verify_files, "atomic_write_json", full)
    assert verify_once(Pack(packs / "base.json")) == 3
    assert "device: cannot record" in capsys.readouterr().err


def test_those_of_one_machine_take_turns(packs: Path, read: list[str]) -> None:
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(verify_once(Pack(packs / "base.json")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [0, 0, 0, 3]
    assert read == shards(packs / "base.json")
