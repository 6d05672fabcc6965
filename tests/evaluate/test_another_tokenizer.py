"""Another tokenizer with as many entries and the old time stamp: no verb reads a run through it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from plumbline.cli import export, sample
from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import manifest as manifests
from plumbline.evaluate import __main__ as evaluation
from plumbline.evaluate import score_models
from plumbline.evaluate.probes import _checkpoint
from plumbline.model.finished_run import FinishedRun

Verb = Callable[..., None]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Verb:
    def call(module: ModuleType, *args: object) -> None:
        monkeypatch.setattr("sys.argv", ["plumbline x", *map(str, args)])
        module.main()

    return call


@pytest.fixture
def corpus(tokenizer_file: Path, tmp_path: Path) -> Path:
    """The folder of a corpus with a tokenizer that a test may replace, and without packs."""
    (tmp_path / "corpus/tokenizer").mkdir(parents=True)
    shutil.copy2(tokenizer_file, tmp_path / "corpus/tokenizer/tokenizer.json")
    return tmp_path / "corpus"


def permute(tokenizer: Path) -> str:
    """Give every entry but the separator the next one's id, and keep the time; returns the SHA-256 that it has then."""
    times, content = tokenizer.stat(), json.loads(tokenizer.read_text())
    words = sorted(
        (word for word, number in content["model"]["vocab"].items() if number), key=content["model"]["vocab"].get
    )
    numbers = [content["model"]["vocab"][word] for word in words]
    content["model"]["vocab"] |= dict(zip(words, numbers[1:] + numbers[:1], strict=True))
    tokenizer.write_text(json.dumps(content))
    os.utime(tokenizer, ns=(times.st_atime_ns, times.st_mtime_ns))
    return sha256_file(tokenizer)


def verbs(run: Path, tokenizer: Path, items: Path, out: Path) -> dict[str, tuple[ModuleType, tuple[object, ...]]]:
    of = ("--tokenizer", tokenizer)
    shared = ("--items-folder", items, "--suite", "climb12", "--limit", 1)
    return {
        "evaluate": (evaluation, ("--run", run, *of, *shared, "--out", out)),
        "score": (score_models, (run, *of, *shared)),
        "sample": (sample, (run, *of)),
        "export": (export, (run, *of, "--format", "hf", "--out", out)),
    }


def flat(command: tuple[ModuleType, tuple[object, ...]]) -> tuple[object, ...]:
    return command[0], *command[1]


PACK = {
    "context": 64, "dtype": "<u2", "sequences": 1, "sequences_per_shard": 1, "vocabulary": 384,
    "shards": [{"file": "train-00000.bin", "sequences": 1, "sha256": "0" * 64}], "tokenizer_sha256": "0" * 64,
}  # fmt: skip


def write_packs(corpus: Path, **packs: dict[str, object]) -> Path:
    """Manifests of packs, without shards, in the corpus's folder."""
    folder = corpus / "packs/context64/train"
    folder.mkdir(parents=True)
    for name, content in packs.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("name", ["evaluate", "score", "sample", "export"])
def test_a_permuted_tokenizer_is_refused_with_both_hashes(
    name: str, finished: Path, corpus: Path, items_folder: Path, tmp_path: Path, verb: Verb
) -> None:
    tokenizer = corpus / "tokenizer/tokenizer.json"
    before = sha256_file(tokenizer)
    after = permute(tokenizer)
    module, args = verbs(finished, tokenizer, items_folder, tmp_path / "out")[name]
    refused = rf"{tokenizer} is not the tokenizer that {finished} was trained with: its sha256 is {after}, and "
    with pytest.raises(PlumblineError, match=rf"{refused}{finished}/manifest\.json says {before}; give or restore"):
        verb(module, *args)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["evaluate", "score", "sample", "export"])
def test_a_file_that_is_no_tokenizer_is_refused_by_its_hash(
    name: str, finished: Path, corpus: Path, items_folder: Path, tmp_path: Path, verb: Verb
) -> None:
    tokenizer = corpus / "tokenizer/tokenizer.json"
    tokenizer.write_text("junk")
    module, args = verbs(finished, tokenizer, items_folder, tmp_path / "out")[name]
    with pytest.raises(PlumblineError, match=rf"{tokenizer}.*not the tokenizer.*{finished}"):
        verb(module, *args)
    # Nor where the run's own manifest names it: then its bytes are read.
    manifest = json.loads((finished / "manifest.json").read_text()) | {"tokenizer_sha256": sha256_file(tokenizer)}
    (finished / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PlumblineError, match=rf"{tokenizer} is not a tokenizer\.json \(expected value"):
        verb(module, *args)
    assert not (tmp_path / "out").exists()


def test_items_replaced_or_not_held_out_are_not_scored(
    finished: Path, corpus: Path, items_folder: Path, tmp_path: Path, verb: Verb
) -> None:
    own = Path(shutil.copytree(items_folder, corpus / "items/climb12"))
    held_out = PACK | {"corpus": {"documents_sha256": "a" * 64}}
    write_packs(corpus, validation=held_out)
    manifest = json.loads((finished / "manifest.json").read_text())
    (finished / "manifest.json").write_text(
        json.dumps(manifest | {"validation_fingerprint": manifests.fingerprint(held_out)})
    )
    command = verbs(finished, corpus / "tokenizer/tokenizer.json", own, tmp_path / "out")["evaluate"]
    fingerprint_file.write(own / "items.json", "code-asked", documents_sha256="a" * 64)
    verb(*flat(command))
    fingerprint_file.write(own / "items.json", "code-asked", documents_sha256="b" * 64)
    with pytest.raises(PlumblineError, match=r"sha256 b{64}, .* a{64} \(.*json\)"):
        verb(*flat(command))
    index = json.loads((own / "items.json").read_text())
    (own / "items.json").write_text(json.dumps({task: entry | {"licence": "mine"} for task, entry in index.items()}))
    with pytest.raises(PlumblineError, match=r"items\.json.*file.*sha256 is \w{64}, and"):
        verb(*flat(command))


def test_a_probed_text_is_encoded_by_the_runs_tokenizer(finished: Path, corpus: Path) -> None:
    tokenizer = corpus / "tokenizer/tokenizer.json"
    run = FinishedRun.read(finished)
    checkpoint = _checkpoint.LoadedCheckpoint(
        folder=finished, subject=None, kind="plumbline", identity="", step=None, fraction=None,  # type: ignore[arg-type]
        context=64, vocabulary=run.spec.model.vocabulary, run=run,
    )  # fmt: skip

    def read() -> torch.Tensor:
        options = {"text": None, "tokens": None, "validation": None, "sequences": 1, "context": None}
        return _checkpoint.read_sequences(checkpoint, tokenizer=tokenizer, **options).tokens_BT

    assert read().shape == (1, 64)
    permute(tokenizer)
    with pytest.raises(PlumblineError, match=r"is not the tokenizer .* trained with"):
        read()


def test_a_run_that_names_no_tokenizer_is_refused(finished: Path, corpus: Path, verb: Verb) -> None:
    path = finished / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["tokenizer_sha256"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(PlumblineError, match=rf"{path} has no 'tokenizer_sha256'.* pretrain again"):
        verb(sample, finished, "--tokenizer", corpus / "tokenizer/tokenizer.json")
