"""Memory goes by bytes: long documents are tokenised in parts, with the same tokens; a rule stays within its limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.data import tokenize
from plumbline.data.text_cleaning import spans
from plumbline.data.tokenizer import Tokenizer
from plumbline.plan.data_stage import LEAST_MB
from tests.data.conftest import Stages

#: The least that the rules `documents`, `tokenizer` and `tokenize` ask for, in MB.
ASKED = LEAST_MB


@given(text=st.text(st.sampled_from("ab1é世'_ \n\t\u00a0\u2028.,"), max_size=200), size=st.integers(1, 40))
def test_parts_are_the_text_and_have_its_tokens(stages: Stages, text: str, size: int) -> None:
    parts = list(spans(text, size))
    assert "".join(parts) == text
    tokenizer = Tokenizer(stages.tokenizer)
    assert [token for part in parts for token in tokenizer.encode(part)] == tokenizer.encode(text)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=300), size=st.integers(1, 9))
def test_any_text_can_be_cut(stages: Stages, text: str, size: int) -> None:
    tokenizer = Tokenizer(stages.tokenizer)
    assert [token for part in spans(text, size) for token in tokenizer.encode(part)] == tokenizer.encode(text)


def test_parts_are_as_long_as_asked_for_where_words_end() -> None:
    assert [len(part) for part in spans("word " * 1000, 100)] == [104] + [105] * 46 + [66]
    assert list(spans("x" * 1000, 100)) == ["x" * 1000]
    assert list(spans("", 5)) == [""]


def test_long_documents_end_once(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tokens whatever the sizes of batches and parts."""
    train, tokenizer = stages.documents / "train.jsonl", Tokenizer(stages.tokenizer)
    counted = tokenize.DocumentCounter()
    whole = list(tokenize.tokenize(train, tokenizer, 0, 1, counted))
    for sizes in ((3, 10**6, 10**6), (512, 50, 10**6), (512, 50, 7), (1, 1, 1)):
        for name, size in zip(("_BATCH", "_CHARACTERS", "_PART"), sizes):
            monkeypatch.setattr(tokenize, name, size)
        again = tokenize.DocumentCounter()
        chunks = list(tokenize.tokenize(train, tokenizer, 0, 1, again))
        assert again == counted and counted.count
        np.testing.assert_array_equal(np.concatenate(chunks), np.concatenate(whole))


def peak(*arguments: str) -> float:
    """Megabytes that a verb took at most."""
    code = (
        "import atexit, runpy, sys\n"
        "atexit.register(lambda: print(open('/proc/self/status').read()))\n"  # getrusage's peak is also the parent's
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    )
    process = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return next(float(line.split()[1]) for line in process.stdout.splitlines() if line.startswith("VmHWM")) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak where Linux keeps it")
def test_packing_takes_the_same_memory(stages: Stages, tmp_path: Path) -> None:
    # Measured where a whole file of sequences was held: 443 MB for these 40 MB, 1,961 MB for 300.
    tokenizer = Tokenizer(stages.tokenizer)
    tokens = np.ones(20_000_000, tokenizer.dtype)
    tokens[-1] = tokenizer.eot
    np.save(tmp_path / "0.npy", tokens)
    arguments = ("--token-shards", f"{tmp_path}/0.npy", "--tokenizer", str(stages.tokenizer), "--context", "1024")
    arguments += ("--documents", f"{stages.documents}/documents.json", "--split", "train", "--pack-size", "base=all")
    assert peak("plumbline.data.pack", *arguments, "--out", f"{tmp_path}/packs") < 150


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak where Linux keeps it")
@pytest.mark.parametrize(("documents", "megabytes"), [(512, 24), (1, 20)])
def test_large_documents_within_the_rules_memory(
    stages: Stages, tmp_path: Path, documents: int, megabytes: int
) -> None:
    # Measured where nothing is cut into parts: 16 MB take 1,157 MB as 512 documents, and 2,902 MB as one.
    text = ("harbour lantern meadow 1790, copper; winter.\n" * 30_000)[: 1_000_000 * megabytes // documents]
    text = (text * (1_000_000 * megabytes // documents // len(text) + 1))[: 1_000_000 * megabytes // documents]
    (tmp_path / "in").mkdir()
    with open(tmp_path / "in/a.jsonl", "w") as file:
        for number in range(documents):
            file.write(json.dumps({"id": f"long-{number}", "source": "s", "text": text}) + "\n")
        for number in range(100):
            file.write(json.dumps({"id": f"short-{number}", "source": "s", "text": "a few words"}) + "\n")
    out = tmp_path / "out"
    local = (
        "--corpus",
        "c",
        "--documents-source",
        "local",
        "--local-texts-folder",
        f"{tmp_path}/in",
        "--out",
        str(out),
    )
    peaks = {"documents": peak("plumbline.data.documents", *local)}
    train = out / "train.jsonl"
    args = ("--training-documents", str(train), "--vocabulary-size", "260", "--out", f"{tmp_path}/t.json")
    peaks["tokenizer"] = peak("plumbline.data.tokenizer", "train", *args)
    common = ("--documents", str(train))
    more = (
        "--tokenizer",
        str(stages.tokenizer),
        "--shard-number",
        "0",
        "--shard-count",
        "1",
        "--out",
        f"{tmp_path}/0.npy",
    )
    peaks["tokenize"] = peak("plumbline.data.tokenize", *common, *more)
    print(peaks)
    assert max(peaks.values()) < ASKED, peaks
