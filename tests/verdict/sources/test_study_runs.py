"""What a study's run is evaluated on is read from its own corpus, and from no other split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.core import fingerprint_file
from plumbline.data import documents
from plumbline.data.manifest import fingerprint
from plumbline.verdict.evidence import SharedTexts
from plumbline.verdict.sources.study_runs import read_shared_texts


def make(work: Path, rule: str = "keep") -> tuple[Path, dict[str, Any]]:
    """A corpus of which many texts are there twice, packs that name it, and a run's folder and manifest."""
    texts, corpus = work / "texts", work / "corpora" / "mine"
    texts.mkdir()
    (texts / "a.jsonl").write_text("".join(json.dumps({"text": f"text {each % 150}"}) + "\n" for each in range(250)))
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(texts)]
    documents.main([*args, "--copies", rule, "--out", str(corpus / "documents")])
    stated = json.loads((corpus / "documents" / "documents.json").read_text())
    fingerprints = {}
    for split, name in (("train", "base"), ("validation", "validation")):
        pack = {"context": 8, "dtype": "<u2", "sequences": 1, "sequences_per_shard": 1, "vocabulary": 9}
        pack |= {"shards": [{"file": "s", "sequences": 1, "sha256": split}], "tokenizer_sha256": "t"}
        pack |= {"corpus": {"documents_sha256": stated["splits"][split]["sha256"]}}
        path = corpus / "packs" / "context8" / split / f"{name}.json"
        path.parent.mkdir(parents=True)
        fingerprint_file.write_facts(path, pack)
        fingerprints[split] = fingerprint(pack)
    spec = {"data": {"corpus": "mine", "pack": "base"}, "model": {"context": 8}}
    manifest = {"spec": spec, "data_fingerprint": fingerprints["train"]}
    return work / "runs/s/base/m/1", manifest | {"validation_fingerprint": fingerprints["validation"]}


@pytest.mark.parametrize("rule", ["keep", "once_in_train", "once_in_validation"])
def test_copies_that_are_left_are_counted(tmp_path: Path, rule: str) -> None:
    folder, manifest = make(tmp_path, rule)
    sides = {
        split: (tmp_path / f"corpora/mine/documents/{split}.jsonl").read_text().splitlines()
        for split in ("train", "validation")
    }
    texts = {split: [json.loads(line)["text"] for line in lines] for split, lines in sides.items()}
    shared = sum(text in set(texts["train"]) for text in texts["validation"])
    assert bool(shared) == (rule == "keep")
    option = "config/corpora/mine.yaml: copies"
    expected = SharedTexts(held_out=len(texts["validation"]), shared=shared, unit="documents", option=option)
    assert read_shared_texts(folder, manifest) == expected


def test_items_that_share_words_are_those_of_the_run_s_suite(tmp_path: Path) -> None:
    folder, manifest = make(tmp_path)
    index = tmp_path / "corpora/mine/items/core/items.json"
    index.parent.mkdir(parents=True)
    index.write_text("{}")
    fingerprint_file.write(index, "", shared_words={"items": 9, "compared": 7, "shared": 2, "words": 13})
    manifests = {suite: manifest | {"spec": manifest["spec"] | {"suite": suite}} for suite in ("core", "other")}
    counts = {suite: read_shared_texts(folder, each) for suite, each in manifests.items()}
    assert (counts["core"].items, counts["core"].items_shared, counts["other"].items) == (7, 2, None)  # type: ignore[union-attr]


def test_a_run_of_another_split_is_not_known(tmp_path: Path) -> None:
    folder, manifest = make(tmp_path)
    assert read_shared_texts(folder, manifest) is not None
    assert read_shared_texts(folder, manifest | {"data_fingerprint": "other"}) is None
    assert read_shared_texts(tmp_path / "elsewhere/s/base/m/1", manifest) is None
    assert read_shared_texts(folder, {"spec": {}}) is None
