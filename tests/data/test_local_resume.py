"""A user's own folder is read on from where a killed process was, to the same bytes; a changed one from its start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.data import documents, read_cache, shard_writer, split
from tests.data.conftest import corpus, write_jsonl
from tests.data.forked_process import run_in_fork

#: Text between two saves, and the documents that it is; a shard of the shuffle is smaller.
SAVED, DOCUMENTS = 20_000, 3000
FILES = ("train.jsonl", "validation.jsonl", "documents.json")


def gather(texts: Path, out: Path, *, reads: int = 0, written: int = 0) -> subprocess.CompletedProcess[str]:
    """The documents of a folder in a fork of this process, which kills itself at a document that is taken or when lines
    are written from such a number on; it states how many of both there were."""
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(texts), "--out", str(out)]

    def count_and_gather() -> None:
        read_cache.SAVE_BYTES, split.WRITE_BYTES, split.SORT_BYTES = SAVED, 5_000, 30_000
        taken = count_calls(documents.DocumentSplitter, "take", reads)
        lines = count_calls(shard_writer._ShardWriter, "take", written, lambda _, block, file: block.documents)  # noqa: SLF001
        documents.main([*args, "--validation-percent", "10"])
        print("COUNTED", *taken, *lines)

    return run_in_fork(count_and_gather)


def count_calls(owner: type, name: str, last: int, weigh: Callable[..., int] = lambda *_: 1) -> list[int]:
    """Count what calls of a method are given; the one with the `last` of it kills the process."""
    inner, count = getattr(owner, name), [0]

    def outer(*arguments: object) -> object:
        before, count[0] = count[0], count[0] + weigh(*arguments)
        if before < last <= count[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments)

    setattr(owner, name, outer)
    return count


def read_counts(done: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    """Documents that a process took, and lines that it wrote."""
    assert done.returncode == 0, done.stderr
    match = re.search(r"COUNTED (\d+) (\d+)", done.stdout)
    return int(match[1]), int(match[2])


def read_outputs(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".lock"}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 documents in three files, one of them ten times as long as another."""
    folder, rows = tmp_path_factory.mktemp("texts"), corpus(DOCUMENTS)
    for name, start, stop in (("a", 0, 200), ("b", 200, 2200), ("c", 2200, DOCUMENTS)):
        write_jsonl(folder / f"{name}.jsonl", rows[start:stop])
    return folder


@pytest.fixture(scope="module")
def whole(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process makes that is not interrupted, without any of this."""
    out = tmp_path_factory.mktemp("whole")
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(texts), "--out", str(out)]
    documents.main([*args, "--validation-percent", "10"])
    assert set(read_outputs(out)) == set(FILES)
    return read_outputs(out)


def count_per_save(texts: Path) -> float:
    """Documents of the text between two saves, with one for the remainder."""
    size = sum(len(path.read_bytes()) for path in texts.iterdir())
    return 2 * SAVED / size * DOCUMENTS + 1


@pytest.mark.parametrize("number", [1, 180, 1500, 2999])
def test_killed_while_it_reads(texts: Path, whole: dict[str, bytes], tmp_path: Path, number: int) -> None:
    killed = gather(texts, tmp_path, reads=number)
    assert killed.returncode == -signal.SIGKILL and not (tmp_path / "train.jsonl").exists(), killed.stderr
    process = gather(texts, tmp_path)
    again = read_counts(process)[0] - (DOCUMENTS - (number - 1))
    assert 0 <= again <= count_per_save(texts), f"{again} documents were taken twice"
    assert read_outputs(tmp_path) == whole, "the same bytes, and nothing is left beside them"


@pytest.mark.parametrize("number", [1, 1200, 2999])
def test_killed_while_it_writes(texts: Path, whole: dict[str, bytes], tmp_path: Path, number: int) -> None:
    killed = gather(texts, tmp_path, written=number)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    process = gather(texts, tmp_path)
    reads, written = read_counts(process)
    assert reads == 0
    assert 0 <= written - (DOCUMENTS - (number - 1)) <= count_per_save(texts) + 3 * DOCUMENTS / 256
    assert read_outputs(tmp_path) == whole


def test_killed_again_and_again_it_comes_to_its_end(texts: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    for _ in range(5):
        assert gather(texts, tmp_path, reads=700).returncode == -signal.SIGKILL or read_outputs(tmp_path) == whole
        if (tmp_path / "documents.json").exists():
            break
    for _ in range(6):
        if not (tmp_path / "documents.json").exists():
            gather(texts, tmp_path, written=900)
    assert read_outputs(tmp_path) == whole


@pytest.mark.parametrize("stage", ["reads", "written"])
def test_a_source_that_changed_meanwhile_is_read_from_its_start(texts: Path, tmp_path: Path, stage: str) -> None:
    own = tmp_path / "texts"
    own.mkdir()
    for path in texts.iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    assert gather(own, tmp_path / "out", **{stage: 2000}).returncode == -signal.SIGKILL
    there = (own / "a.jsonl").stat()
    content = bytearray((own / "a.jsonl").read_bytes())  # the file that was read first; its size and time stay
    content[content.index(b'"text": "') + 9] = ord("Q")
    (own / "a.jsonl").write_bytes(content)
    os.utime(own / "a.jsonl", ns=(there.st_atime_ns, there.st_mtime_ns))
    process = gather(own, tmp_path / "out")
    assert read_counts(process)[0] == DOCUMENTS
    assert "changed: reading starts again" in process.stderr
    assert not list((tmp_path / "out").glob(".local-*"))
    gather(own, tmp_path / "anew")
    assert read_outputs(tmp_path / "out") == read_outputs(tmp_path / "anew")


@pytest.mark.parametrize("damage", ["byte", "short", "gone"])
def test_other_shards_are_written_again(texts: Path, whole: dict[str, bytes], tmp_path: Path, damage: str) -> None:
    assert gather(texts, tmp_path, written=2000).returncode == -signal.SIGKILL
    (part,) = tmp_path.glob(".local-*/train.jsonl.part")
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content[:50] if damage == "short" else content)
    if damage == "gone":
        part.unlink()
    process = gather(texts, tmp_path)
    assert read_counts(process)[0] == 0
    assert damage == "gone" or "not what was written" in process.stderr
    assert read_outputs(tmp_path) == whole


def test_text_files_go_on_as_well(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(300):
        (texts / f"{number:03d}.txt").write_text(f"harbour {number} lantern meadow " * 20)
    assert gather(texts, tmp_path / "out", reads=250).returncode == -signal.SIGKILL
    reads, _ = read_counts(gather(texts, tmp_path / "out"))
    assert 51 <= reads < 51 + SAVED / 400
    gather(texts, tmp_path / "anew")
    assert read_outputs(tmp_path / "out") == read_outputs(tmp_path / "anew")


def test_a_mistake_keeps_nothing_small(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "texts"
    own.mkdir()
    (own / "a.jsonl").write_bytes((texts / "a.jsonl").read_bytes() + b"{\n")
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(own)]
    with pytest.raises(documents.PlumblineError, match="line of JSON"):
        documents.main([*args, "--out", str(tmp_path / "out")])
    assert not read_outputs(tmp_path / "out") and "are kept there" not in capsys.readouterr().err
    assert read_cache.SAVE_BYTES > 10**8 and split.WRITE_BYTES > 10**7
