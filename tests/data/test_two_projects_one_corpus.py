"""Two projects that make one corpus at the same time: the second waits, and finds what the first has made."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.files import sha256_file
from plumbline.data import documents, fetch, read_cache, sources, split
from plumbline.data.document import START, Document, StreamPosition

COMMITS = ("a" * 40, "b" * 40)


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A data set whose newest commit is another one each time that it is requested; the commits that it was read at."""
    commits, read, both = iter(COMMITS), list[str](), threading.Barrier(2)
    for name, size in (("SAVE_BYTES", 2000), ("WRITE_BYTES", 500)):
        monkeypatch.setattr(read_cache if name == "SAVE_BYTES" else split, name, size)

    def newest(*_: str) -> str:
        commit = next(commits)
        with_another(both)
        return commit

    def rows(*, revision: str, start: StreamPosition = START, **_: Any) -> Iterator[Document]:
        read.append(revision)
        for number in range(start.number, 300):
            time.sleep(0.0005)
            end = StreamPosition(0, number + 1, number + 1)
            text = f"{number} of {revision} " * 5
            yield Document(id=f"set/{number}", source="set", text=text, group=str(number), end=end)

    monkeypatch.setattr(sources.hub, "_fetch_newest", newest)
    monkeypatch.setattr(sources.hub, "documents", rows)
    return read


def with_another(both: threading.Barrier) -> None:
    """Go on together with the other one if it comes here, too."""
    try:
        both.wait(0.5)
    except threading.BrokenBarrierError:
        return


def test_neither_writes_into_the_others_files(
    tmp_path: Path, moving: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    args = ["--corpus", "mine", "--documents-source", "hub", "--hub-dataset", "org/set", "--validation-percent", "20"]
    with ThreadPoolExecutor(2) as both:
        for done in [both.submit(documents.main, [*args, "--out", str(tmp_path)]) for _ in range(2)]:
            done.result()
    assert f"{tmp_path}: another process is making" in capfd.readouterr().err
    facts = json.loads((tmp_path / "documents.json").read_text())
    assert set(moving) == {COMMITS[0]} == {json.loads((tmp_path / "hub.lock").read_text())["commit"]}
    assert facts["collections"][0]["revision"] == COMMITS[0]
    for part in facts["splits"].values():
        assert sha256_file(tmp_path / part["file"]) == part["sha256"]


def test_an_archive_that_another_one_has_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find what is wrong, and both would put it aside."""
    out, right = tmp_path / "made-up.whl", tmp_path / "right"
    out.write_bytes(b"wrong")
    right.write_bytes(b"right")
    hashed = fetch.sha256_file

    def meanwhile(path: Path) -> str:
        digest = hashed(path)
        if path == out:
            os.replace(out, out.with_name("made-up.whl.rejected"))
        return digest

    monkeypatch.setattr(fetch, "sha256_file", meanwhile)
    monkeypatch.setattr(fetch, "_download", lambda *_, **__: right)
    assert fetch.fetch("made-up==1.0", sha256_file(right), out).startswith("fetched")
    assert out.read_bytes() == b"right"
