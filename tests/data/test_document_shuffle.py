"""The shuffle: the order is that of the hashes whatever the sizes, and memory does not go with the corpus."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import documents
from plumbline.data.split import DocumentShuffle
from tests.data.conftest import corpus, write_jsonl

#: Bytes that wait, and that are sorted, in these tests.
SMALL = {"write_bytes": 100_000, "sort_bytes": 20_000}


def fill_shuffle(folder: Path, rows: list[dict[str, str]], **sizes: int) -> DocumentShuffle:
    shuffle = DocumentShuffle(folder, **sizes)
    for row in rows:
        shuffle.add(row["id"], row["source"], row["text"])
    return shuffle


def peak(action: Callable[[], object]) -> int:
    """Bytes that Python held at most in a call, beyond what it held before."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def count_lines(shuffle: DocumentShuffle) -> int:
    return sum(1 for _ in shuffle.lines())


def test_corpora_of_before_come_out_byte_for_byte(tmp_path: Path) -> None:
    """Checksums from the shuffle in 128 files that were each sorted whole. A change here is one of `kept.FORMAT`."""
    write_jsonl(tmp_path / "in" / "a.jsonl", corpus(700))
    arguments = [
        "--corpus",
        "mine",
        "--documents-source",
        "local",
        "--local-texts-folder",
        f"{tmp_path}/in",
        "--out",
        f"{tmp_path}/out",
    ]
    documents.main([*arguments, "--split-documents-at-bytes", "100", "--validation-percent", "10"])
    assert {split: sha256_file(tmp_path / f"out/{split}.jsonl")[:16] for split in documents.SPLITS} == {
        "train": "ff445142a1cc3e1a",
        "validation": "2aa6607fcfc55548",
    }


@pytest.mark.parametrize("sizes", [{}, {"write_bytes": 700}, {"sort_bytes": 1}, {"write_bytes": 1, "sort_bytes": 900}])
def test_files_that_are_split_again_change_no_order(tmp_path: Path, sizes: dict[str, int]) -> None:
    rows = corpus(600)
    expected = sorted(rows, key=lambda row: hashlib.sha256(f"order\n{row['id']}".encode()).digest())
    shuffle = fill_shuffle(tmp_path / "a", rows[::-1], **sizes)
    assert [bytes(line).decode() for line in shuffle.lines()] == [
        json.dumps(row, ensure_ascii=False) + "\n" for row in expected
    ]
    assert len(list(tmp_path.rglob("*"))) <= 1 + 256, "only the first files stay"


MEASURED = """
import sys, tracemalloc
from pathlib import Path
from plumbline.data.split import DocumentShuffle
shuffle = DocumentShuffle(Path(sys.argv[1]), write_bytes=100_000, sort_bytes=20_000)
tracemalloc.start()
for number in range(int(sys.argv[2])):
    shuffle.add(str(number), "s", "words " * 200)
shuffle.save()
print(tracemalloc.get_traced_memory()[1])
tracemalloc.reset_peak()
assert sum(1 for _ in shuffle.lines()) == int(sys.argv[2])
print(tracemalloc.get_traced_memory()[1])
"""


def test_memory_does_not_go_with_the_corpus(tmp_path: Path) -> None:
    """In a separate process: others allocate where they please."""
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "a"), "6000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    taking, giving = map(int, done.stdout.split())
    rest = 1_000_000  # sizes and names of 256 files, a line, buffers; and Python's table of names, when it grows
    assert taking < 1.2 * SMALL["write_bytes"] + rest
    assert giving < 1.6 * SMALL["sort_bytes"] + rest
    written = sum(path.stat().st_size for path in (tmp_path / "a").iterdir())
    assert written > 1280 * 6000, "ten times as much"


def test_a_long_text_costs_its_own_size(tmp_path: Path) -> None:
    text = 'a "quoted" wörd\n' * 1_000_000
    size = len(text.encode())
    rows = [{"id": f"{number}", "source": "s", "text": "short"} for number in range(2000)]
    shuffle = fill_shuffle(tmp_path / "a", rows, **SMALL)
    assert peak(lambda: shuffle.add("long", "s", text)) < size / 2, "written in parts"
    hashes: list[str] = []

    def drain() -> None:
        hashes.extend(hashlib.sha256(line).hexdigest() for line in shuffle.lines() if len(line) > size)

    assert peak(drain) < 1.5 * size  # as JSON it is a fifth longer
    line = json.dumps({"id": "long", "source": "s", "text": text}, ensure_ascii=False) + "\n"
    assert hashes == [hashlib.sha256(line.encode()).hexdigest()]


@pytest.mark.parametrize("sort_bytes", [10, 10**6])
def test_an_id_that_stands_twice_is_named(tmp_path: Path, sort_bytes: int) -> None:
    rows = corpus(50)
    shuffle = fill_shuffle(tmp_path / "a", [*rows, rows[7]], sort_bytes=sort_bytes)
    with pytest.raises(PlumblineError, match=f"two documents .*'{rows[7]['id']}'"):
        count_lines(shuffle)
    whole = fill_shuffle(tmp_path / "b", rows)
    (tmp_path / "before.jsonl").write_bytes(b"".join(whole.lines()))
    with pytest.raises(PlumblineError, match=f"two documents .*'{rows[7]['id']}'"):
        list(fill_shuffle(tmp_path / "c", [rows[7]]).lines(tmp_path / "before.jsonl"))


def test_what_comes_later_is_merged_with_what_was_finished(tmp_path: Path) -> None:
    rows = corpus(300)
    whole = b"".join(fill_shuffle(tmp_path / "whole", rows).lines())
    (tmp_path / "first.jsonl").write_bytes(b"".join(fill_shuffle(tmp_path / "first", rows[:200]).lines()))
    assert b"".join(fill_shuffle(tmp_path / "second", rows[200:], **SMALL).lines(tmp_path / "first.jsonl")) == whole


@pytest.mark.parametrize("sort_bytes", [2_000, 10**6])
def test_a_file_that_the_disk_changed_is_refused(tmp_path: Path, sort_bytes: int) -> None:
    """One bit of a text: as JSON it is as good as before, and it would have been trained on."""
    before = fill_shuffle(tmp_path / "s", corpus(400), write_bytes=3_000, sort_bytes=sort_bytes)
    sizes = before.save()
    path = max((tmp_path / "s").iterdir(), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    at = content.index(b'"text": "') + 12
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    after = DocumentShuffle(tmp_path / "s", sort_bytes=sort_bytes)
    after.restore(sizes)
    with pytest.raises(PlumblineError, match=rf"{path}: its CRC-32 is .* delete {tmp_path}"):
        list(after.lines())


def test_what_was_saved_is_continued(tmp_path: Path) -> None:
    rows = corpus(300)
    whole = b"".join(fill_shuffle(tmp_path / "whole", rows).lines())
    first = fill_shuffle(tmp_path / "a", rows[:200])
    saved = json.loads(json.dumps(first.save()))
    for row in rows[250:]:
        first.add(**{"identity": row["id"], "source": row["source"], "text": row["text"]})
    first.save()  # and is killed before what it returns is written down
    second = DocumentShuffle(tmp_path / "a")
    second.restore({int(number): size for number, size in saved.items()})
    for row in rows[200:]:
        second.add(row["id"], row["source"], row["text"])
    assert b"".join(second.lines()) == whole
    with open(tmp_path / "a" / f"{int(next(iter(saved))):02x}", "r+b") as file:
        file.truncate(10)
    with pytest.raises(PlumblineError, match="10 bytes are left"):
        DocumentShuffle(tmp_path / "a").restore({int(number): size for number, size in saved.items()})
