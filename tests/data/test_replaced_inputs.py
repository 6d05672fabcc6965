"""What an earlier step made and was replaced with its time kept is read by no later one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import documents, tokenize, tokenizer
from plumbline.evaluate.proxy_items import ProxyMaterial
from tests.data.conftest import Stages, run_pack


@pytest.fixture
def own(stages: Stages, tmp_path: Path) -> Stages:
    """A corpus that a test may change, with what each file states about itself."""
    root = stages.tokenizer.parent
    copies = Stages(
        documents=tmp_path / "documents",
        tokenizer=tmp_path / "tokenizer.json",
        tokens=[tmp_path / path.name for path in stages.tokens],
        packs=tmp_path / "packs",
    )
    shutil.copytree(root / "documents", copies.documents)
    for path in (stages.tokenizer, *stages.tokens):
        for file in path.parent.glob(f"{path.stem}.*"):  # with what lies next to it
            shutil.copy2(file, tmp_path)
    return copies


def replace_bytes(path: Path, content: bytes) -> Path:
    """Other bytes with the time of those that were there."""
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return path


def swap_tokens(path: Path) -> None:
    content = json.loads(path.read_text())
    numbers = content["model"]["vocab"]
    first, other = [word for word, number in numbers.items() if number in (7, 8)]
    numbers[first], numbers[other] = numbers[other], numbers[first]
    replace_bytes(path, json.dumps(content).encode())


def retokenize(own: Stages) -> None:
    args = ["--documents", str(own.documents / "train.jsonl"), "--tokenizer", str(own.tokenizer)]
    tokenize.main([*args, "--shard-number", "0", "--shard-count", "3", "--out", str(own.tokens[0])])


def decode_token_files(own: Stages) -> None:
    """Token files, whose documents are decoded with the tokenizer."""
    (own.packs / "in").mkdir(parents=True)
    np.save(own.packs / "in/a.npy", np.array([5, 6, 0], "<u2"))
    args = [
        *["--corpus", "mine", "--documents-source", "local", "--local-texts-folder"],
        f"{own.packs}/in",
        "--out",
        f"{own.packs}/out",
    ]
    documents.main([*args, "--document-end", "0", "--token-files-tokenizer", str(own.tokenizer)])


def test_a_tokenizer_that_was_replaced_encodes_nothing(own: Stages) -> None:
    before = sha256_file(own.tokenizer)
    swap_tokens(own.tokenizer)
    message = (
        rf"{own.tokenizer} is not the file that was made: its sha256 is {sha256_file(own.tokenizer)}, and .* {before}"
    )
    for read in (retokenize, lambda own: run_pack(own, own.packs, "base=300"), decode_token_files):
        with pytest.raises(PlumblineError, match=message):
            read(own)


def test_tokens_of_another_tokenizer_are_not_packed_as_this_ones(own: Stages) -> None:
    """Its record is gone as well, and every id is an entry of both."""
    before = sha256_file(own.tokenizer)
    swap_tokens(own.tokenizer)
    fingerprint_file.sidecar_path(own.tokenizer).unlink(missing_ok=True)
    message = rf"train-0000\.npy was not made with {own.tokenizer} as it is now: .* {before}, and now it is "
    with pytest.raises(PlumblineError, match=message + sha256_file(own.tokenizer)):
        run_pack(own, own.packs, "base=300")


def test_tokens_of_other_documents_or_other_ids_are_not_packed(own: Stages, capsys: pytest.CaptureFixture[str]) -> None:
    facts = own.documents / "documents.json"
    whole = facts.read_bytes()
    replace_bytes(facts, whole.replace(b"held out if", b"held out iff"))
    with pytest.raises(PlumblineError, match=r"documents\.json.*not as.*`documents`"):
        run_pack(own, own.packs, "base=300")
    content = json.loads(whole)
    content["splits"]["train"]["sha256"] = "0" * 64
    del content[fingerprint_file.OF_THE_REST]
    replace_bytes(facts, json.dumps(content).encode())
    with pytest.raises(PlumblineError, match=r"train-0000\.npy.*made.*documents\.json"):
        run_pack(own, own.packs, "base=300")
    replace_bytes(facts, whole)
    ids = np.load(own.tokens[1])
    ids[:2] = ids[1], ids[0]
    np.save(own.tokens[1], ids)
    with pytest.raises(PlumblineError, match=r"train-0001\.npy.*not the file.*its sha256"):
        run_pack(own, own.packs, "base=300")
    fingerprint_file.sidecar_path(own.tokens[1]).unlink(missing_ok=True)
    run_pack(own, own.packs, "base=300")
    assert "train-0001.npy: nothing beside" in capsys.readouterr().err


def retrain(own: Stages) -> None:
    train = str(own.documents / "train.jsonl")
    tokenizer.main(["train", "--training-documents", train, "--vocabulary-size", "300", "--out", str(own.tokenizer)])


@pytest.mark.parametrize("read", [retrain, retokenize, lambda own: ProxyMaterial.read(own.documents / "train.jsonl")])
def test_documents_that_were_replaced_are_not_read(own: Stages, read: Callable[[Stages], None]) -> None:
    read(own)
    path = own.documents / "train.jsonl"
    replace_bytes(path, path.read_bytes().replace(b"a", b"b", 1))
    with pytest.raises(PlumblineError, match=rf"{path}.*documents\.json.*`documents`"):
        read(own)
