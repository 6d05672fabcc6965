"""What a dry run states after an edit, with Snakemake's memory and without it. Nothing is made here but one corpus."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plumbline.data.manifest import fingerprint
from plumbline.specs import study_config
from tests.workflow.conftest import SMOKE, products
from tests.workflow.project_copy import STUDY, Project, jobs_by_rule

RUN = "transfer/base/baseline/s42"
OUTCOME = f"work/smoke/runs/{RUN}/outcome.json"
PACKS = "work/smoke/corpora/climbmix/packs/context64"
LOCAL = (*SMOKE, "data={source: local}")
CORPUS = {"documents": 1, "tokenizer": 1, "tokenize": 4, "pack": 2}
pytestmark = pytest.mark.workflow


@contextmanager
def forgotten(project: Project) -> Iterator[None]:
    """Without .snakemake, for the time of a block."""
    memory = project.root / ".snakemake"
    memory.rename(project.root / "memory")
    try:
        yield
    finally:
        shutil.rmtree(memory, ignore_errors=True)
        (project.root / "memory").rename(memory)


@contextmanager
def edit_file(project: Project, file: str, before: str, after: str) -> Iterator[None]:
    """With a file edited, for the time of a block; its time is then what it was."""
    path = project.root / file
    original, times = path.read_bytes(), path.stat()
    project.edit(file, before, after)
    try:
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture(scope="module")
def corpus(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A corpus read from a folder, and a run that states that it was trained on it."""
    project = Project.copy(repository, tmp_path_factory.mktemp("stale") / "project")
    project.local_corpus()
    process = project.snakemake(f"{PACKS}/train", f"{PACKS}/validation", *LOCAL)
    assert process.returncode == 0, process.stdout[-4000:]
    spec = study_config.load("transfer", "smoke", project.root, "local").runs[RUN].spec
    packs = {"data_fingerprint": "train/base.json", "validation_fingerprint": "validation/validation.json"}
    record: dict[str, Any] = {key: fingerprint(project.read(f"{PACKS}/{name}")) for key, name in packs.items()}
    record |= {"run_id": spec.run_id, "outcome": "completed", "spec": spec.to_dict()}
    folder = (project.root / OUTCOME).parent
    (folder / "points").mkdir(parents=True)
    for name in ("outcome.json", "manifest.json", "metrics.parquet", "model.safetensors", "points/index.json"):
        (folder / name).write_text(json.dumps(record))
    return project


def test_edited_corpus_code_makes_the_corpus_anew(corpus: Project) -> None:
    """It may end the same; a run is trained again when the packs that are there are not those that it read."""
    with edit_file(corpus, "src/plumbline/data/documents.py", "import argparse", "import argparse\nEDITED = 1"):
        assert corpus.planned(OUTCOME, *LOCAL) == CORPUS
        missing = OUTCOME.replace("baseline", "qknorm")
        assert corpus.planned(OUTCOME, missing, *LOCAL) == CORPUS | {"pretrain": 1}, "what is not there is made as well"
        behind = f"work/smoke/scores/{RUN.replace('baseline', 'qknorm')}/scores.parquet"
        assert corpus.planned(behind, *LOCAL)["pretrain"] == 1
        with forgotten(corpus):
            assert corpus.planned(OUTCOME, *LOCAL) == CORPUS
    manifest = f"{PACKS}/train/base.json"
    with edit_file(corpus, manifest, '"tokenizer_sha256": "', '"tokenizer_sha256": "0'), forgotten(corpus):
        process = corpus.snakemake("-n", OUTCOME, *LOCAL)
        assert jobs_by_rule(process.stdout) == {"pretrain": 1}
        assert f"rebuilt: 1 of pretrain ({OUTCOME})" in process.stdout
        assert corpus.planned(OUTCOME, "--rerun-triggers", "mtime", *LOCAL) == {}


def test_a_file_added_to_a_folder_and_removed_from_it(corpus: Project) -> None:
    more = corpus.root / "texts/more.jsonl"
    more.write_text(json.dumps({"id": "more", "source": "made-up", "text": "a few words"}))
    os.utime(more, (1, 1))  # a copy keeps its time
    try:
        with forgotten(corpus):
            assert corpus.planned(OUTCOME, *LOCAL) == CORPUS | {"pretrain": 1}
    finally:
        more.unlink()
    assert corpus.planned(OUTCOME, *LOCAL) == {}


def test_a_changed_learning_rate_after_the_memory_is_lost(corpus: Project) -> None:
    with corpus.changed(lambda study: study["methods"]["baseline"].update(optimizer={"learning_rate": 2e-3})):
        shutil.rmtree(corpus.root / ".snakemake")
        assert corpus.planned(OUTCOME, *LOCAL) == {"pretrain": 1}
    assert corpus.planned(OUTCOME, *LOCAL) == {}


def test_another_tokenizer_with_the_old_time_loses_no_score(finished_copy: Project) -> None:
    tokenizer, run = "work/smoke/corpora/climbmix/tokenizer/tokenizer.json", "work/smoke/runs/transfer/base/attnres/s42"
    scores = {path: path.read_bytes() for path in (finished_copy.root / "work/smoke/scores").rglob("*.parquet")}
    times = (finished_copy.root / tokenizer).stat()
    with edit_file(finished_copy, tokenizer, '"f":70,"g":71', '"f":71,"g":70'):
        os.utime(finished_copy.root / tokenizer, ns=(times.st_atime_ns, times.st_mtime_ns))
        process = finished_copy.snakemake("results/table2.csv", *SMOKE)
    assert process.returncode == 1
    assert f"{run} was trained with: its sha256" in process.stdout
    assert {path: path.read_bytes() for path in scores} == scores


def test_an_edit_is_seen_with_snakemakes_memory_and_without(finished_copy: Project) -> None:
    """Of how scores are read, and of a method's label; a comment is none."""
    scores = "src/plumbline/evaluate/score_frames.py"
    with forgotten(finished_copy), edit_file(finished_copy, scores, "import math", "import math  # for sums"):
        assert finished_copy.planned(*products(), *SMOKE) == {}
    remade = {"evaluate": 26, "table": 6, "figure": 2, "interpretations": 1, "copy_table": 1}
    with (
        edit_file(finished_copy, scores, "import math", "import math\nEDITED = 1"),
        edit_file(finished_copy, STUDY, "label: Softpick\n", "label: Soft pick\n"),
    ):
        assert finished_copy.planned(*products(), *SMOKE) == remade
        with forgotten(finished_copy):
            assert finished_copy.planned(*products(), *SMOKE) == remade
