"""A data set of the hub, from a local folder in hub layout: how much of it is read, and that an interrupted fetch goes
on where it stopped, to the same bytes."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import documents, hub_reading, pack, read_cache, shard_writer, sources, split, tokenize, tokenizer
from plumbline.data.document import START, Document, StreamPosition
from tests.data.forked_process import run_in_fork

CONTEXT, VOCABULARY = 16, 300
FILES = ("train.jsonl", "validation.jsonl", "documents.json")


@pytest.fixture(scope="module", params=["parquet", "jsonl"])
def data_set(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 rows in four files, some of them blank, a parquet file in several row groups."""
    draw, folder = random.Random(1), tmp_path_factory.mktemp("hub") / "set"
    words = ["".join(draw.choices("abcdeéi\u4e16o", k=draw.randint(1, 7))) for _ in range(300)]
    texts = [
        " " if n % 97 == 5 else f"{n} " + " ".join(draw.choices(words, k=draw.randint(5, 60))) for n in range(2000)
    ]
    (folder / "data").mkdir(parents=True)
    for part in range(4):
        frame, name = pd.DataFrame({"text": texts[part::4]}), f"train-{part:05d}-of-00004.{request.param}"
        if request.param == "parquet":
            frame.to_parquet(folder / "data" / name, row_group_size=110)
        else:
            frame.to_json(folder / "data" / name, orient="records", lines=True)
    return folder


#: Where nothing goes by how rows lie in files: one kind of file shows it.
ONE_KIND = pytest.mark.parametrize("data_set", ["parquet"], indirect=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))


def arguments(data_set: Path, out: Path, *, tokens: int = 0, percent: int = 10) -> list[str]:
    more = (
        ["--token-budget", str(tokens), "--tokenizer-kind", "byte_level_bpe", "--vocabulary-size", str(VOCABULARY)]
        if tokens
        else []
    )
    common = [
        "--corpus",
        "mine",
        "--documents-source",
        "hub",
        "--hub-dataset",
        str(data_set),
        "--validation-percent",
        str(percent),
    ]
    return [*common, "--out", str(out), *more]


def fetch(data_set: Path, out: Path, **options: int) -> dict[str, Any]:
    documents.main(arguments(data_set, out, **options))
    return json.loads((out / "documents.json").read_text())


def bytes_of(out: Path) -> dict[str, str]:
    return {name: sha256_file(out / name) for name in FILES}


def pack_fetched(out: Path, sequences: int) -> dict[str, Any]:
    """The pack that comes of fetched documents."""
    vocab, tokens, train = out / "tokenizer.json", out / "train-0000.npy", out / "train.jsonl"
    tokenizer.main(
        ["train", "--training-documents", str(train), "--vocabulary-size", str(VOCABULARY), "--out", str(vocab)]
    )
    shard = ["--shard-number", "0", "--shard-count", "1", "--out", str(tokens)]
    tokenize.main(["--documents", str(train), "--tokenizer", str(vocab), *shard])
    options = ["--documents", f"{out}/documents.json", "--split", "train", "--context", str(CONTEXT)]
    size = ["--pack-size", f"base={sequences}", "--out", f"{out}/packs"]
    pack.main(["--token-shards", str(tokens), "--tokenizer", str(vocab), *options, *size])
    return json.loads((out / "packs/base.json").read_text())


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[StreamPosition]:
    """Where each reading of a data set began."""
    positions: list[StreamPosition] = []
    read = sources.hub.documents

    def record_start(*, start: StreamPosition = START, **options: Any) -> Iterator[Document]:
        positions.append(start)
        yield from read(start=start, **options)

    monkeypatch.setattr(sources.hub, "documents", record_start)
    return positions


@ONE_KIND
def test_the_stream_stops_at_the_measured_budget(data_set: Path, tmp_path: Path) -> None:
    sequences = 900
    tokens = round((sequences + 1) * CONTEXT / 0.9)
    facts = fetch(data_set, tmp_path, tokens=tokens)
    budget, whole = facts["budget"], fetch(data_set, tmp_path / "whole")
    assert budget["bytes_per_token"] == pytest.approx(budget["sample_bytes"] / budget["sample_tokens"], rel=1e-6)
    assert budget["bytes"] == pytest.approx(tokens * budget["bytes_per_token"] * 1.1, abs=1)
    assert budget["read_bytes"] == sum(side["text_bytes"] for side in facts["splits"].values())
    assert budget["bytes"] <= budget["read_bytes"] < budget["bytes"] + 600, "to the end of a document"
    assert budget["read_bytes"] < sum(side["text_bytes"] for side in whole["splits"].values()) / 3
    assert not budget["stream_ended"] and "budget" not in whole
    assert pack_fetched(tmp_path, sequences)["sequences"] == sequences


@ONE_KIND
def test_a_data_set_that_ends_first(data_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PlumblineError, match=r"mine\.yaml: hub: .* [\d,]+ tokens .*1,000,000"):
        fetch(data_set, tmp_path, tokens=10**6)
    (kept_there,) = tmp_path.glob(".hub-*")
    assert json.loads((kept_there / "cursor.json").read_text())["tally"]["taken"].keys() == {"train", "validation"}
    tokens = round(1.05 * _tokens_there(tmp_path))
    facts = fetch(data_set, tmp_path, tokens=tokens)
    assert facts["budget"]["stream_ended"] and sum(side["documents"] for side in facts["splits"].values()) == 1979
    stderr = capsys.readouterr().err
    assert re.search(rf"mine\.yaml: hub: .* ended early: .* [\d,]+ tokens .* {tokens:,} are", stderr)
    with pytest.raises(PlumblineError, match=r"50,000 .* the data set ended"):
        pack_fetched(tmp_path, 50_000)
    assert not (tmp_path / "hub.short").exists()


def _tokens_there(out: Path) -> float:
    budget = json.loads((out / "documents.json").read_text())["budget"]
    return budget["read_bytes"] / budget["bytes_per_token"]


def test_a_fetch_that_came_out_short_goes_on(data_set: Path, tmp_path: Path, starts: list[StreamPosition]) -> None:
    """What packing found is what the next fetch reads, from where the first stopped, to the bytes of a fetch of now."""
    fetch(data_set, tmp_path / "out", tokens=8000)
    message = r"pack 'base' asks for 700 .* its budget of .*/out/hub\.short now records: .* continues the fetch"
    with pytest.raises(PlumblineError, match=message):
        pack_fetched(tmp_path / "out", 700)
    rows = starts[-1].number, json.loads(next((tmp_path / "out").glob(".hub-*/cursor.json")).read_text())["position"]
    facts = fetch(data_set, tmp_path / "out", tokens=8000)
    assert starts[-1]._asdict() == rows[1] and starts[-1].number > 80
    assert facts["budget"]["bytes"] == pytest.approx(1.1 * facts["budget"]["found_short"], abs=1)
    assert pack_fetched(tmp_path / "out", 700)["sequences"] == 700
    (tmp_path / "anew").mkdir()
    (tmp_path / "anew/hub.short").write_bytes((tmp_path / "out/hub.short").read_bytes())
    fetch(data_set, tmp_path / "anew", tokens=8000)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "anew")
    kept_there = [path for path in (tmp_path / "out").glob(".hub-*/**/*") if path.is_file()]
    assert {path.stat().st_nlink for path in kept_there if path.suffix == ".jsonl"} == {2}, "no room on the disk"


def fetch_and_be_killed(args: list[str], owner: Any, name: str, after: int) -> None:
    """Fetch in another process, which kills itself when a function's iterators have yielded so many in all."""

    def fetch_in_parts() -> None:
        read_cache.SAVE_BYTES, split.WRITE_BYTES, split.SORT_BYTES = 150_000, 60_000, 2_000
        inner, numbers = getattr(owner, name), itertools.count()

        def outer(*arguments: Any, **options: Any) -> Iterator[Any]:
            for element in inner(*arguments, **options):
                if next(numbers) == after:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield element

        setattr(owner, name, outer)
        documents.main(args)

    done = run_in_fork(fetch_in_parts)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_killed_fetch_goes_on_to_the_same_bytes(data_set: Path, tmp_path: Path, starts: list[StreamPosition]) -> None:
    args = arguments(data_set, tmp_path / "out")
    fetch_and_be_killed(args, hub_reading.hub, "documents", 1700)
    assert not any((tmp_path / "out" / name).exists() for name in FILES)
    fetch(data_set, tmp_path / "out")
    assert starts[-1].number > 1300, "on from where it was saved last"
    fetch(data_set, tmp_path / "whole")
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")


@ONE_KIND
def test_a_fetch_killed_while_writing(data_set: Path, tmp_path: Path, starts: list[StreamPosition]) -> None:
    """A time limit may come in the hours that sorting takes, after the hours that reading took."""
    args = arguments(data_set, tmp_path / "out")
    fetch_and_be_killed(args, split.ShuffleFile, "results", 120)
    assert not any((tmp_path / "out" / name).exists() for name in FILES)
    fetch(data_set, tmp_path / "out")
    assert starts[-1].number == 2000, "behind the last row"
    fetch(data_set, tmp_path / "whole")
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")


def test_a_failed_read_or_write_is_not_repeated(
    data_set: Path, tmp_path: Path, starts: list[StreamPosition], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = sources.hub.documents

    def read_and_fail(**options: Any) -> Iterator[Document]:
        for document in read(**options):
            if document.end.number == 222 and len(starts) > 1:  # the first reading is the measurement
                raise PlumblineError("the network went away")
            yield document

    with monkeypatch.context() as patch, pytest.raises(PlumblineError, match="went away"):
        patch.setattr(sources.hub, "documents", read_and_fail)
        fetch(data_set, tmp_path / "out", tokens=30_000)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk"):
        patch.setattr(shard_writer, "name_in_errors", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
        fetch(data_set, tmp_path / "out", tokens=30_000)
    assert starts[-1].number == 221
    count = len(starts)
    fetch(data_set, tmp_path / "out", tokens=30_000)
    assert len(starts) == count, "nothing is left to be read"
    fetch(data_set, tmp_path / "whole", tokens=30_000)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")
    count = len(starts)
    for name in FILES:  # as Snakemake does before it runs a rule again
        (tmp_path / "out" / name).unlink()
    fetch(data_set, tmp_path / "out", tokens=30_000)
    assert len(starts) == count and bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")
    for name in FILES:
        (tmp_path / "out" / name).unlink()
    with monkeypatch.context() as patch:  # another user's files may not be linked, nor said to be of today
        patch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "Operation not permitted")))
        fetch(data_set, tmp_path / "out", tokens=30_000)
    assert len(starts) == count and bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")


@ONE_KIND
def test_what_is_kept_of_something_else_is_not_used(
    data_set: Path, tmp_path: Path, starts: list[StreamPosition], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    fetch(data_set, out, tokens=20_000)
    capsys.readouterr()
    fetch(data_set, out, tokens=20_000, percent=20)
    assert starts[-1].number == 0
    assert re.search(r"\.hub-\w+:.*read.*data.*validation_percent 10.*not used", capsys.readouterr().err)
    fetch(data_set, tmp_path / "other", tokens=20_000, percent=20)
    assert bytes_of(out) == bytes_of(tmp_path / "other")
    fetch(data_set, out, tokens=9_000, percent=20)
    assert starts[-1].number == 0
    assert re.search(r"mine\.yaml: packs: .* reading starts again, .*\.larger, until", capsys.readouterr().err)
    fetch(data_set, tmp_path / "less", tokens=9_000, percent=20)
    assert bytes_of(out) == bytes_of(tmp_path / "less")


@ONE_KIND
def test_what_is_kept_and_damaged_is_not_used(data_set: Path, tmp_path: Path) -> None:
    fetch(data_set, tmp_path, tokens=9_000)
    (folder,) = tmp_path.glob(".hub-*")
    whole = next(folder.glob("whole-*/train.jsonl"))
    whole.write_bytes(whole.read_bytes()[:-5] + b"wrong")
    with pytest.raises(PlumblineError, match=rf"train\.jsonl: its sha256 is .* delete {folder}"):
        fetch(data_set, tmp_path, tokens=12_000)
    cursor = (folder / "cursor.json").read_text()
    (folder / "cursor.json").write_text(cursor.replace('"shard": 0', '"shard": 1'))
    with pytest.raises(PlumblineError, match=r"cursor\.json:.*\(ValueError: its sha256"):
        fetch(data_set, tmp_path, tokens=12_000)
    (folder / "cursor.json").write_text("{}")
    with pytest.raises(PlumblineError, match=r"cursor\.json:.*\(KeyError:.*; delete"):
        fetch(data_set, tmp_path, tokens=12_000)


@ONE_KIND
def test_a_file_system_without_hard_links(
    data_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read_cache.os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "not permitted")))
    fetch(data_set, tmp_path, tokens=9_000)
    assert "no hard links here (not permitted)" in capsys.readouterr().err
    assert not list(tmp_path.glob(".hub-*"))


def test_a_large_parquet_file_is_not_held_as_a_whole(tmp_path: Path) -> None:
    """By default the library asks for all of a file before its first row, and holds it until the last."""

    texts = [random.Random(number).randbytes(1000).hex() for number in range(5000)]
    pd.DataFrame({"text": texts}).to_parquet(tmp_path / "all.parquet", row_group_size=100)

    def read_for_a_row(number: int) -> int:
        """Bytes that this process reads until it has one."""
        path = tmp_path / f"data{number}" / "a.parquet"
        path.parent.mkdir()
        path.hardlink_to(tmp_path / "all.parquet")
        options = {"corpus": "c", "path": str(path.parent), "configuration": "", "split": "train", "revision": ""}
        before = _bytes_read()
        next(sources.hub.documents(**options, text_column="text"))
        return _bytes_read() - before

    # It reads on beside us, on a busy machine more than on an idle one: by default it never reads so little.
    assert any(read_for_a_row(number) < 2_000_000 for number in range(20)), "a file of ten megabytes"


def _bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])
