"""The user's own token files through the workflow, as docs/your-own-data.md has it: from the files to packs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.workflow.project_copy import Project, jobs_by_rule

CORPUS = "config/corpora/climbmix.yaml"
MADE = "work/smoke/corpora/climbmix"
LOCAL = ("--config", "preset=smoke", "data={source: local}", "studies=[transfer]")
PACKS = (f"{MADE}/packs/context64/train", f"{MADE}/packs/context64/validation")
pytestmark = pytest.mark.workflow


def example(project: Project, language: str) -> str:
    page = (project.root / "docs" / "your-own-data.md").read_text().partition("## Token files\n")[2]
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)[0]


def keys_of_the_page(project: Project) -> None:
    mapping, path = yaml.safe_load(example(project, "yaml")), project.root / CORPUS
    content = yaml.safe_load(path.read_text())
    content["local"] = mapping["local"]
    content["presets"]["smoke"]["tokenizer"] = mapping["presets"]["smoke"]["tokenizer"]
    path.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which the page's commands were given, the last of them (a dry run) too."""
    project = Project.copy(repository, tmp_path_factory.mktemp("tokens") / "project")
    keys_of_the_page(project)
    commands = [line[2:] for line in example(project, "console").splitlines() if line.startswith("$ ")]
    assert len(commands) == 3
    for command in commands:
        program, *arguments = shlex.split(command)
        process = project.python(*(["-m", "snakemake"] if program == "snakemake" else []), *arguments)
        assert process.returncode == 0, process.stdout[-4000:]
    assert jobs_by_rule(process.stdout)["pretrain"] == 26
    assert not {"documents", "tokenizer", "tokenize", "pack"} & jobs_by_rule(process.stdout).keys()
    return project


def test_both_files_hold_ids_where_the_pages_are_without_the_code(repository: Path, tmp_path: Path) -> None:
    """A project that `plumbline init` wrote has docs/ and no src/."""
    shutil.copytree(repository / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("_*"))
    subprocess.run([sys.executable, str(repository / "examples" / "make_tokens.py")], cwd=tmp_path, check=True)
    train, held_out = (np.fromfile(tmp_path / "tokens" / f"{name}.bin", dtype="<u2") for name in ("train", "val"))
    assert len(train) > len(held_out) > 0


@contextmanager
def other(project: Project, change: Any) -> Iterator[None]:
    with project.changed(change, CORPUS):
        yield


def test_the_packs_hold_the_files_ids(project: Project) -> None:
    folder = project.root / MADE
    assert (folder / "tokenizer/tokenizer.json").read_bytes() == (project.root / "tokens/tokenizer.json").read_bytes()
    for side, name, size in (("train", "train", "large"), ("validation", "val", "validation")):
        ids = np.fromfile(project.root / f"tokens/{name}.bin", "<u2")
        lines = [json.loads(line) for line in (folder / f"documents/{side}.jsonl").read_text().splitlines()]
        places = [line["tokens"] for line in lines]
        expected = np.concatenate([np.append(ids[place["start"] : place["stop"]], 0) for place in places])
        assert len(expected) == len(ids)
        manifest = project.read(f"{MADE}/packs/context64/{side}/{size}.json")
        shards = [folder / "packs/context64" / side / shard["file"] for shard in manifest["shards"]]
        packed = np.concatenate([np.fromfile(shard, "<u2") for shard in shards])
        np.testing.assert_array_equal(packed[: manifest["tokens"]], expected[: manifest["tokens"]])


def test_a_changed_file_or_key_makes_the_corpus_anew(project: Project) -> None:
    corpus = {"documents": 1, "tokenizer": 1, "tokenize": 4, "pack": 2}
    path = project.root / "tokens/val.bin"
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content[2:])
    try:
        assert project.planned(*PACKS, *LOCAL) == corpus
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with other(project, lambda content: content["local"].update(document_end=7)):
        assert project.planned(*PACKS, *LOCAL) == corpus
    assert project.planned(*PACKS, *LOCAL) == {}


def vocabulary(content: dict[str, Any]) -> None:
    content["presets"]["smoke"]["tokenizer"]["vocabulary"] = 1025


@pytest.mark.parametrize(
    ("change", "args", "message"),
    [
        (lambda content: content["local"].pop("document_end"), LOCAL, "local.document_end: missing; tokens holds"),
        (lambda content: None, LOCAL[:2], "tokenizer.kind: given: it belongs"),
        (vocabulary, LOCAL, "1025 entries, model.vocabulary only 1024: give"),
    ],
)
def test_what_is_not_said_is_told_by_the_plan(project: Project, change: Any, args: Any, message: str) -> None:
    with other(project, change):
        process = project.snakemake("-n", *PACKS, *args)
    assert process.returncode != 0 and message in process.stdout and "Traceback" not in process.stdout, process.stdout[
        -3000:
    ]
