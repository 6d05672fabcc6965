"""What corpora, items and scores are made of: the code that decides their bytes, and what is required of it."""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plumbline.project import Project, fingerprints, load
from plumbline.specs import code_facts, code_hash
from plumbline.specs.spec_changes import overlay
from plumbline.specs.yaml_files import ROOT, load_config
from tests.forget_caches import forget

CORPUS, SUITE = "climbmix", "climb12"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose corpus may be read from a folder."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, folder / name)
    path = folder / f"config/corpora/{CORPUS}.yaml"
    path.write_text(path.read_text().replace('local: {folder: ""}', f"local: {{folder: {folder}/texts}}"))
    return folder


def load_project(root: Path, **settings: Any) -> Project:
    return load(overlay(copy.deepcopy(load_config()), {"preset": "smoke", "studies": ["transfer"]} | settings), root)


def whole(project: Project) -> dict[str, str]:
    """All of it, by product."""
    stages = {
        kind: project.fingerprints.corpus(kind, CORPUS) for kind in ("documents", "tokenizer", "tokenize", "pack")
    }
    return stages | {"items": project.fingerprints.items(CORPUS, SUITE), "scores": project.fingerprints.scores(SUITE)}


def find_changed(before: dict[str, str], after: dict[str, str], part: int) -> set[str]:
    """Products whose code (0), or what is required of them (1), is another."""
    return {kind for kind in before if before[kind].split("-")[part] != after[kind].split("-")[part]}


CODE = [
    ("data/documents.py", {"documents"}),
    ("data/sources/packaged.py", {"documents"}),
    ("data/sources/local.py", {"documents"}),
    ("data/sources/tokens.py", {"documents", "tokenize"}),
    ("data/tokenizer.py", {"documents", "tokenizer", "tokenize", "pack"}),
    ("data/tokenize.py", {"tokenize"}),
    ("data/pack.py", {"pack"}),
    ("data/fetch.py", set()),
    ("data/loader.py", set()),
    ("evaluate/proxy_items.py", {"items"}),
    ("evaluate/score_frames.py", {"scores"}),
    ("evaluate/harness_tasks.py", {"items", "scores"}),
    ("model/decoder.py", set()),
    ("specs/yaml_files.py", set()),
]  # fmt: skip


@pytest.mark.parametrize(("file", "expected"), CODE, ids=[entry[0] for entry in CODE])
def test_code_is_of_what_it_makes_and_of_nothing_else(file: str, expected: set[str]) -> None:
    """The model's code is the identity of runs, and is not checked here; nor is what only reads configuration."""
    assert (code_hash.PACKAGE / file).is_file()
    assert {
        kind for kind in fingerprints.VERBS if code_hash.PACKAGE / file in fingerprints.verb_files(kind)
    } == expected


def test_an_edit_changes_the_code(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = load_project(root)
    before = whole(here)
    shutil.copytree(code_hash.PACKAGE / "data", tmp_path / "plumbline/data")
    path = tmp_path / "plumbline/data/pack.py"
    path.write_text(f"# A comment.\n{path.read_text()}")
    with monkeypatch.context() as patch:
        patch.setattr(code_hash, "PACKAGE", path.parents[1])
        forget(fingerprints)
        assert here.fingerprints.corpus("pack", CORPUS) == before["pack"]
        path.write_text(path.read_text() + "EDITED = 1\n")
        forget(code_hash, fingerprints)
        after = here.fingerprints.corpus("pack", CORPUS)
        assert find_changed(before, before | {"pack": after}, 0) == {"pack"}
        assert not find_changed(before, before | {"pack": after}, 1), "nothing else is asked"
    forget(fingerprints)


def test_what_is_asked_changes_what_comes_after(root: Path) -> None:
    before = whole(load_project(root))
    limit = load_project(root)
    limit.preset["evaluation"] = limit.preset["evaluation"] | {"limit": 7}
    assert find_changed(before, whole(limit), 1) == {"scores"}
    assert find_changed(before, whole(load_project(root, evaluation={"metric": "acc"})), 1) == {"scores"}
    assert find_changed(before, whole(load_project(root, evaluation={"source": "hub"})), 1) == {"items"}
    large = whole(load_project(root, data={"source": "packaged_large"}))
    assert find_changed(before, large, 1) == {"documents", "tokenizer", "tokenize", "pack", "items"}
    elsewhere = whole(load_project(root, work="/scratch/elsewhere"))
    assert elsewhere == before, "where it lies is not what it is"


def test_a_budget_makes_documents_stale_and_no_run(root: Path) -> None:
    """Runs wait for what is asked (the second part), and another budget may give the same bytes."""

    def documents(packs: dict[str, Any], **settings: Any) -> tuple[str, str]:
        here = load_project(root, data={"source": "hub"}, **settings)
        chosen = msgspec.structs.replace(here.corpora[CORPUS], packs=packs)
        code, _, request = (
            dataclasses.replace(here, corpora={CORPUS: chosen}).fingerprints.corpus("documents", CORPUS).partition("-")
        )
        return code, request

    few, more, whole = documents({"base": 5000}), documents({"base": 5001}), documents({"base": None})
    assert len({few[0], more[0], whole[0]}) == 3 and few[1] == more[1] == whole[1]
    assert documents({"base": 100, "large": 5000}) == few, "the largest decides"
    folder = root / "short/smoke/corpora" / CORPUS / "documents"
    folder.mkdir(parents=True)
    work = {"work": str(root / "short")}
    assert documents({"base": 5000}, **work) == few
    (folder / "hub.short").write_text('{"data_set": {"name": "a"}, "bytes": 7}')
    assert documents({"base": 5000}, **work)[0] != few[0] and documents({"base": 5000}, **work)[1] == few[1]


def test_a_file_added_to_a_folder_removed_from_it_or_longer(root: Path) -> None:
    texts, settings = root / "texts", {"data": {"source": "local"}}
    (texts / "deep").mkdir(parents=True)
    (texts / "a.jsonl").write_text("{}\n")
    before = whole(load_project(root, **settings))
    more = texts / "deep/b.jsonl"
    more.write_text("{}\n")
    assert load_project(root, **settings).inputs.corpus_files(CORPUS) == [str(texts / "a.jsonl"), str(more)]
    added = whole(load_project(root, **settings))
    assert find_changed(before, added, 1) == {"documents", "tokenizer", "tokenize", "pack", "items"}
    more.write_text("{ }\n")
    assert whole(load_project(root, **settings)) != added
    more.unlink()
    assert whole(load_project(root, **settings)) == before
    (texts / "notes.md").touch()
    assert whole(load_project(root, **settings)) == before, "nobody reads it"


def test_commit_of_hubs_data_set_written_down_is_no_other_corpus(root: Path, tmp_path: Path) -> None:
    settings, path = {"data": {"source": "hub"}, "work": str(tmp_path)}, root / f"config/corpora/{CORPUS}.yaml"
    before, text = whole(load_project(root, **settings)), path.read_text()
    lock = tmp_path / "smoke/corpora" / CORPUS / "documents/hub.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"path": "OptimalScale/ClimbMix", "configuration": "", "commit": "a" * 40}))
    assert whole(load_project(root, **settings)) == before
    path.write_text(text.replace('revision: ""', f"revision: {'a' * 40}"))
    assert whole(load_project(root, **settings)) == before
    path.write_text(text.replace('revision: ""', f"revision: {'b' * 40}"))
    other = whole(load_project(root, **settings))
    path.write_text(text)
    assert find_changed(before, other, 1) == {"documents", "tokenizer", "tokenize", "pack", "items"}


def test_items_of_ones_own_are_files_of_the_suites_tasks(root: Path, tmp_path: Path) -> None:
    settings = {"evaluation": {"source": "local", "folder": str(tmp_path), "missing": "proxy"}}
    before = whole(load_project(root, **settings))
    (tmp_path / "piqa.jsonl").write_text(json.dumps({"goal": "g"}))
    (tmp_path / "no_task.jsonl").touch()
    here = load_project(root, **settings)
    assert here.inputs.item_files(SUITE) == [str(tmp_path / "piqa.jsonl")]
    assert find_changed(before, whole(here), 1) == {"items"}


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A file of the package is read as one with a line more."""
    read = code_facts.read_source

    def edit_file(file: str) -> None:
        edited = code_hash.PACKAGE / file
        monkeypatch.setattr(code_facts, "read_source", lambda path: read(path) + b"\nEDITED = 1\n" * (path == edited))
        forget(code_hash, fingerprints)

    yield edit_file
    forget(code_hash, fingerprints)


@pytest.mark.parametrize("file", ["model/ffn/relu_squared.py", "model/mixers/softmax.py"])
def test_a_table_is_made_of_its_models_components(root: Path, edit: Callable[[str], None], file: str) -> None:
    """They are found by name, not imported: Table 4 counts parameters and no run is behind it."""
    smoke = load_project(root)
    before = {name: smoke.fingerprints.product("transfer", "table", name) for name in ("table4", "protocol_error")}
    edit(file)
    after = {name: smoke.fingerprints.product("transfer", "table", name) for name in before}
    assert {name for name in before if before[name] != after[name]} == {"table4"}


def test_a_table_that_builds_models_is_made_of_the_corpus(root: Path) -> None:
    before = load_project(root).fingerprints.product("transfer", "table", "table4")
    path = root / f"config/corpora/{CORPUS}.yaml"
    text = path.read_text()
    assert "65536" in text
    path.write_text(text.replace("65536", "65000"))
    after = load_project(root).fingerprints.product("transfer", "table", "table4")
    path.write_text(text)
    assert before != after


def test_a_table_is_made_of_the_runs_that_it_needs(root: Path) -> None:
    path = root / "studies/transfer/study.yaml"
    text, before = path.read_text(), load_project(root)
    assert "methods: [hybrid_norm], seeds: [43, 44]" in text
    path.write_text(text.replace("methods: [hybrid_norm], seeds: [43, 44]", "methods: [hybrid_norm], seeds: [43]"))
    after = load_project(root)
    path.write_text(text)
    targets = [("table", "table6"), ("claims", None), ("table", "table2"), ("interpretations", None)]
    moved = [
        target or kind
        for kind, target in targets
        if before.fingerprints.product("transfer", kind, target) != after.fingerprints.product("transfer", kind, target)
    ]
    assert moved == ["table6", "claims"]


def test_probe_values_are_made_of_each_probe_that_a_run_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of an installed package lies outside the folder of probes."""
    smoke = load_project(root, studies=["key_norms"], main_study="key_norms")
    run = next(run for run in smoke.runs.values() if run.spec.probes)
    before, first = smoke.fingerprints.probes(run), run.spec.probes[0].name
    classes = fingerprints.components.code_class
    monkeypatch.setattr(
        fingerprints.components, "code_class", lambda kind, name: "edited" if name == first else classes(kind, name)
    )
    assert smoke.fingerprints.probes(run) != before
