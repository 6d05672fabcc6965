"""Documents that several processes cut and sort are those of one process, to the byte; one that ends is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data import cut_documents, documents, read_cache, split
from plumbline.data.workers import Workers
from tests.data.conftest import corpus, write_jsonl
from tests.data.forked_process import run_in_fork

FILES = ("train.jsonl", "validation.jsonl", "documents.json")


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Make everything small that goes by bytes, so that many jobs and blocks come of few texts."""
    for owner, name, size in (
        (read_cache, "SAVE_BYTES", 20_000),
        (split, "WRITE_BYTES", 5_000),
        (split, "SORT_BYTES", 3_000),
        (split, "_BLOCK", 700),
        (cut_documents, "_BATCH", 7),
        (cut_documents, "_BATCH_SIZE", 900),
    ):
        patch.setattr(owner, name, size)


def gather(source: list[str], out: Path, workers: int) -> dict[str, bytes]:
    """What the verb writes."""
    documents.main(["--corpus", "mine", *source, "--out", str(out), "--workers", str(workers)])
    assert {path.name for path in out.iterdir() if path.is_file()} == {*FILES, ".lock"}
    return {name: (out / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Texts in lines, some of them copies; text files; a data set in the hub's layout, of which not all is read."""
    root, rows = tmp_path_factory.mktemp("sources"), corpus(600)
    rows[500:] = [{"id": f"again-{number}", "source": "s", "text": rows[number]["text"]} for number in range(100)]
    write_jsonl(root / "lines/a.jsonl", rows[:100])
    write_jsonl(root / "lines/b.jsonl", [{"text": row["text"]} for row in rows[100:]])
    (root / "files").mkdir()
    for number, row in enumerate(rows[:90]):
        (root / f"files/{number}.txt").write_text(row["text"] * 9, encoding="utf-8")
    (root / "hub/data").mkdir(parents=True)
    for part in range(2):
        frame = pd.DataFrame({"text": [row["text"] for row in rows[part::2]]})
        frame.to_parquet(root / f"hub/data/train-{part:05d}-of-00002.parquet")
    local, cut = ["--documents-source", "local", "--local-texts-folder"], ["--split-documents-at-bytes", "60"]
    budget = ["--token-budget", "9000", "--tokenizer-kind", "byte_level_bpe", "--vocabulary-size", "300"]
    hub = ["--documents-source", "hub", "--hub-dataset", f"{root}/hub", "--validation-percent", "10"]
    return {
        "lines": [*local, f"{root}/lines", "--validation-percent", "20"],
        "lines in pieces, without copies": [*local, f"{root}/lines", *cut, "--copies", "once_in_train"],
        "files": [*local, f"{root}/files", "--validation-percent", "20"],
        "hub, all": hub,
        "hub, a part": [*hub, *budget],
        "by hand": [*local, f"{root}/lines", "--max-megabytes", "0.02", "--validation-percent", "20"],
    }


@pytest.mark.parametrize(
    "kind", ["lines", "lines in pieces, without copies", "files", "hub, all", "hub, a part", "by hand"]
)
def test_the_same_bytes_whatever_the_number_of_processes(
    sources: dict[str, list[str]], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    whole = gather(sources[kind], tmp_path / "alone", 1)
    shrink(monkeypatch)
    for workers in (1, 2, 3):
        assert gather(sources[kind], tmp_path / str(workers), workers) == whole
    if kind == "hub, a part":
        assert not json.loads(whole["documents.json"])["budget"]["stream_ended"]


def gather_in_fork(source: list[str], out: Path, break_it: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """The same with two processes in a fork of this one, in which something was broken before."""

    def gather_broken() -> None:
        with pytest.MonkeyPatch.context() as patch:
            shrink(patch)
            break_it()
            documents.main(["--corpus", "mine", *source, "--out", str(out), "--workers", "2"])

    return run_in_fork(gather_broken)


def kill_at(owner: Any, name: str, at: Callable[..., bool]) -> Callable[[], None]:
    """Have the process that calls a function with such arguments killed."""

    def patch() -> None:
        inner = getattr(owner, name)

        def outer(*arguments: Any) -> Any:
            if at(*arguments):
                os.kill(os.getpid(), signal.SIGKILL)
            return inner(*arguments)

        setattr(owner, name, outer)

    return patch


def count_to(last: int) -> Callable[..., bool]:
    """Whether it is asked for the `last` time."""
    numbers = iter(range(1, last + 1))
    return lambda *_: next(numbers, 0) == last


@pytest.mark.parametrize("stage", ["reads", "sorts"])
def test_killed_and_gone_on_with_by_more_of_them(
    sources: dict[str, list[str]], tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gather(sources["lines"], tmp_path / "whole", 1)
    reads = kill_at(cut_documents.DocumentSplitter, "take", count_to(450))
    written = kill_at(documents.shard_writer._ShardWriter, "take", count_to(200))  # noqa: SLF001
    killed = gather_in_fork(sources["lines"], tmp_path / "out", reads if stage == "reads" else written)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not any((tmp_path / "out" / name).exists() for name in FILES)
    shrink(monkeypatch)
    assert gather(sources["lines"], tmp_path / "out", 3) == whole


def test_a_process_that_is_killed_is_named_by_file_and_document(
    sources: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does for want of memory; the same command goes on."""
    cuts = kill_at(cut_documents.CutRule, "cut", lambda _, document: document.id == "b.jsonl:343")
    killed = gather_in_fork(sources["lines"], tmp_path / "out", cuts)
    assert killed.returncode == 1
    assert "lines/b.jsonl:343: the process that worked" in killed.stderr
    sorts = kill_at(split, "hash_text", lambda line: b'"b.jsonl:343"' in bytes(line))
    killed = gather_in_fork(sources["lines"], tmp_path / "out", sorts)
    assert killed.returncode == 1 and "(exit code -9" in killed.stderr
    key = split._key_of("b.jsonl:343")  # noqa: SLF001
    assert f"/{key[0]:02x}, document " in killed.stderr
    shrink(monkeypatch)
    assert gather(sources["lines"], tmp_path / "out", 2) == gather(sources["lines"], tmp_path / "whole", 1)


def test_a_line_that_is_no_document_is_named_as_by_one_process(
    sources: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    rows = corpus(300)
    rows[211]["text"] = " "
    write_jsonl(tmp_path / "texts/a.jsonl", rows)
    local = ["--documents-source", "local", "--local-texts-folder", f"{tmp_path}/texts"]
    for workers in (1, 2):
        with pytest.raises(PlumblineError, match=r"a\.jsonl:212: key 'text' must"):
            gather(local, tmp_path / f"out{workers}", workers)
    rows[211] = rows[210]
    write_jsonl(tmp_path / "texts/a.jsonl", rows)
    for workers in (1, 2):
        with pytest.raises(PlumblineError, match=r"documents.*'doc-210'"):
            gather(local, tmp_path / f"out{workers}", workers)


def test_an_error_that_nobody_expects_names_the_document(
    sources: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = split.is_held_out

    def fail(unit: str, percent: float) -> bool:
        if unit == "doc-77":
            raise MemoryError("no room")
        return inner(unit, percent)

    monkeypatch.setattr(cut_documents, "is_held_out", fail)
    with pytest.raises(PlumblineError, match=r"a\.jsonl:78: MemoryError: no room"):
        gather(sources["lines"], tmp_path / "out", 2)


def test_processes_end_with_the_one_that_made_them() -> None:
    def start() -> None:
        with Workers(2) as workers:
            print(*(process.pid for process in workers._processes), flush=True)  # noqa: SLF001
            os.kill(os.getpid(), signal.SIGKILL)

    def has_ended(pid: str) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    pids = run_in_fork(start).stdout.split()
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while not all(map(has_ended, pids)):
        assert time.monotonic() < deadline, "they wait for a process that is gone"
        time.sleep(0.01)
