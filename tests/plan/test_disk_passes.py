"""How often each rule of the data stage reads and writes its text: benchmarks/job_resources.yaml against the kernel's
count of the bytes that this process read and wrote."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.data import documents, pack, split, tokenize, tokenizer
from plumbline.data.cut_documents import CutRule
from plumbline.data.document import Document
from plumbline.plan import job_needs

SELF = Path("/proc/self/io")
#: Bytes of text, by which what is read whatever the size is little.
SIZE = 8_000_000

pytestmark = pytest.mark.skipif(not SELF.exists(), reason="this kernel does not count a process's bytes")


def count_moved(job: Callable[[], object]) -> int:
    """The bytes that a job reads and writes by calls."""

    def count() -> int:
        return sum(int(number) for number in re.findall(r"[rw]char: (\d+)", SELF.read_text()))

    before = count()
    job()
    return count() - before


def texts(size: int) -> Iterator[Document]:
    """Documents of some four thousand characters."""
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(3000)]
    while size > 0:
        text = " ".join(rng.choices(words, k=600))
        yield Document(id=f"d{size}", source="made up", text=text, group=f"d{size}")
        size -= len(text)


def gather_texts(out: Path) -> None:
    about = {"source": "local", "collections": []}
    rule = CutRule(validation_percent=1, held_out_by="id", piece_bytes=0)
    documents.gather(texts(SIZE), out, corpus="mine", rule=rule, about=about)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("corpus")
    gather_texts(folder)
    return SimpleNamespace(folder=folder, stored=(folder / "train.jsonl").stat().st_size)


def passes(rule: str, when: str, unit: str) -> float:
    factor: float = job_needs.laws()[rule]["disk"][when][unit]
    return factor


@pytest.mark.parametrize("splits", [False, True])
def test_documents_are_written_sorted_and_written(
    corpus: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, splits: bool
) -> None:
    if splits:
        monkeypatch.setattr(split, "SORT_BYTES", SIZE // 1000)
    ratio = count_moved(lambda: gather_texts(tmp_path / "out")) / corpus.stored
    expected = passes("documents", "mb", "stored_mb") + splits * passes("documents", "mb", "split_mb")
    assert ratio == pytest.approx(expected, rel=0.06), "the hash of each line in the shuffle is the rest"


def test_texts_of_ones_own_are_hashed_and_read_besides(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    lines = [json.dumps({"text": document.text}) for document in texts(SIZE)]
    (own / "a.jsonl").write_text("\n".join(lines) + "\n")
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(own)]
    ratio = count_moved(lambda: documents.main([*args, "--out", str(tmp_path / "out")]))
    read, stored = (own / "a.jsonl").stat().st_size, (tmp_path / "out" / "train.jsonl").stat().st_size
    expected = passes("documents", "mb", "local_mb") * read + passes("documents", "mb", "stored_mb") * stored
    assert ratio == pytest.approx(expected, rel=0.06)


def test_documents_are_verified_once_on_a_machine(corpus: SimpleNamespace) -> None:
    folder, stored, tokens = corpus.folder, corpus.stored, corpus.folder / "tokens"
    tokens.mkdir()
    args = ["--training-documents", str(folder / "train.jsonl"), "--vocabulary-size", "1000"]
    args += ["--training-megabytes", "2", "--out", str(folder / "t.json")]
    actual = count_moved(lambda: tokenizer.main(["train", *args]))
    read = passes("tokenizer", "before", "stored_mb") * stored + passes("tokenizer", "mb", "training_mb") * 2e6
    assert actual == pytest.approx(read, rel=0.06)

    def shard(number: int) -> None:
        args = ["--documents", str(folder / "train.jsonl"), "--tokenizer", str(folder / "t.json")]
        args += ["--shard-number", str(number), "--shard-count", "2", "--fingerprint", "x"]
        tokenize.main([*args, "--out", str(tokens / f"train-{number:04d}.npy")])

    later = [count_moved(lambda number=number: shard(number)) for number in (0, 1)]
    size = sum(path.stat().st_size for path in tokens.glob("*.npy"))
    work = passes("tokenize", "mb", "shard_mb") * stored + passes("tokenize", "mb", "tokens_mb") * size
    assert sum(later) == pytest.approx(work, rel=0.06), "the tokenizer's job has verified them on this machine"
    (record,) = folder.glob(".verified/*.json")
    record.unlink()
    assert count_moved(lambda: shard(0)) - later[0] == pytest.approx(
        passes("tokenize", "before", "stored_mb") * stored, rel=0.06
    )

    args = ["--token-shards", str(tokens), "--shard-count", "2", "--tokenizer", str(folder / "t.json")]
    args += ["--documents", str(folder / "documents.json"), "--split", "train", "--context", "128"]
    packed = count_moved(lambda: pack.main([*args, "--pack-size", "base=all", "--out", str(folder / "packs")]))
    assert packed == pytest.approx(passes("pack", "mb", "pack_mb") * size, rel=0.06)
    assert json.loads((folder / "packs" / "base.json").read_text())["tokens"] * 2 == pytest.approx(size, rel=0.01)
