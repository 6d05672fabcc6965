"""A small synthetic corpus, taken through every stage once."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from plumbline.data import documents, pack, tokenize, tokenizer

CONTEXT = 16


def write_jsonl(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def corpus(count: int) -> list[dict[str, str]]:
    """Sentences of made-up words, some beyond ASCII, some naming the separator."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdeéi\u4e16o", k=rng.randint(1, 7))) for _ in range(80)] + ["<|endoftext|>"]
    return [
        {"id": f"doc-{number}", "source": "made-up", "text": " ".join(rng.choices(words, k=rng.randint(1, 60)))}
        for number in range(count)
    ]


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Where the stages' products lie."""

    documents: Path
    tokenizer: Path
    tokens: list[Path]
    packs: Path


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    root = tmp_path_factory.mktemp("data")
    write_jsonl(root / "corpus" / "a.jsonl", corpus(400))
    documents.main(
        [
            "--corpus",
            "made_up",
            "--documents-source",
            "local",
            "--local-texts-folder",
            f"{root}/corpus",
            "--out",
            f"{root}/documents",
        ]
    )
    vocab = root / "tokenizer.json"
    train = root / "documents" / "train.jsonl"
    tokenizer.main(["train", "--training-documents", str(train), "--vocabulary-size", "320", "--out", str(vocab)])
    tokens = [root / f"train-{shard:04d}.npy" for shard in range(3)]
    for shard, path in enumerate(tokens):
        common = ["--documents", str(train), "--tokenizer", str(vocab), "--shard-count", "3"]
        tokenize.main([*common, "--shard-number", str(shard), "--out", str(path)])
    outputs = Stages(documents=root / "documents", tokenizer=vocab, tokens=tokens, packs=root / "packs")
    run_pack(outputs, outputs.packs, "base=300", "large=all")
    return outputs


def run_pack(stages: Stages, out: Path, *sizes: str, tokens: list[Path] | None = None) -> None:
    pack.main(
        [
            *(
                "--token-shards",
                *map(str, tokens or stages.tokens),
                "--tokenizer",
                str(stages.tokenizer),
                "--split",
                "train",
            ),
            *("--documents", f"{stages.documents}/documents.json", "--context", str(CONTEXT), "--out", str(out)),
            *("--sequences-per-shard", "128", *(part for size in sizes for part in ("--pack-size", size))),
        ]
    )
