"""A tokenizer, prose, items and runs, all made up and tiny."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from plumbline.core.files import sha256_file
from plumbline.evaluate import items, proxy_items
from plumbline.evaluate.proxy_items import ProxyMaterial
from plumbline.model.decoder import create
from plumbline.specs.spec import RunSpec
from plumbline.specs.suites import suite
from tests.model_specs import BASELINE, run_spec

VOCABULARY = 384
PLAIN = """
harbour lantern meadow copper winter orchard signal timber granite velvet marble engine bottle
garden silver window candle forest hammer ladder mirror needle paddle quarry ribbon saddle tunnel
violin wagon yellow
"""
WORDS = PLAIN.split()


def prose(documents: int, seed: int = 0) -> list[str]:
    """Documents of thirty sentences, whose words come back often enough to be asked for."""
    rng = random.Random(seed)
    return [
        " ".join(" ".join(rng.choices(WORDS, k=rng.randint(8, 14))).capitalize() + "." for _ in range(30))
        for _ in range(documents)
    ]


@pytest.fixture(scope="session")
def documents_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "validation.jsonl"
    lines = ({"id": str(index), "source": "test", "text": text} for index, text in enumerate(prose(12)))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(prose(5, seed=1), trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="session")
def tokenizer(tokenizer_file: Path) -> Tokenizer:
    return Tokenizer.from_file(str(tokenizer_file))


@pytest.fixture(scope="session")
def items_folder(documents_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Proxy items for all twelve tasks."""
    folder = tmp_path_factory.mktemp("items")
    documents = ProxyMaterial.read(documents_file)
    tasks = [
        items.TaskItems(
            task=task,
            task_source="proxy",
            items=proxy_items.items(task, documents, 6),
            licence="none",
            origin="made up",
        )
        for task in suite("climb12")
    ]
    items.write(folder, tasks)
    return folder


def spec() -> RunSpec:
    """A run of the small baseline with room for this vocabulary."""
    return run_spec(
        model=BASELINE | {"vocabulary": VOCABULARY + 8, "context": 64},
        schedule__warmup_steps=1,
        train__steps=1,
        train__batch_tokens=64,
        train__validation_sequences=1,
        data__tokenizer_vocabulary=VOCABULARY,
        suite="climb12",
    )


@pytest.fixture
def finished(tmp_path: Path, tokenizer_file: Path) -> Path:
    """The folder of a completed run with weights as initialised, ten times larger so that answers differ."""
    folder = tmp_path / "run"
    folder.mkdir()
    run = spec()
    weights = {name: value * 10 for name, value in create(run.model, 42).state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    manifest = {"run_id": run.run_id, "spec": run.to_dict(), "tokenizer_sha256": sha256_file(tokenizer_file)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "outcome.json").write_text(json.dumps({"run_id": run.run_id, "outcome": "completed"}))
    return folder
