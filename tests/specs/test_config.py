"""YAML files behind closed schemas: each mistake is told with file, key and remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.cli import PlumblineError
from plumbline.specs import config, corpus


@pytest.fixture
def root(repository: Path, tmp_path: Path) -> Path:
    """A folder that holds a copy of config/."""
    for file in (
        *repository.glob("config/*.yaml"),
        *repository.glob("config/*/*.yaml"),
        *repository.glob("config/*/*/*.yaml"),
    ):
        target = tmp_path / file.relative_to(repository)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.read_text())
    return tmp_path


def change(path: Path, at: str, value: Any) -> None:
    """Set the key at a dotted path of a YAML file."""
    content = yaml.safe_load(path.read_text())
    *parents, last = at.split(".")
    inner = content
    for key in parents:
        inner = inner[key]
    inner[last] = value
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def test_what_is_in_the_repository_is_valid(repository: Path) -> None:
    assert config.load_config()["preset"] == "demo"
    for preset in config.PRESETS:
        assert config.load_preset(preset)["preset"] == preset
    assert "transfer" in config.studies() and "transfer" in config.documents()
    for study in config.studies():
        assert config.load_study(study)["study"] == study
    for name in corpus.corpora():
        assert corpus.load(name, "smoke").name == name


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        ("preste", "demo", r"top level: unknown key 'preste'; did you mean 'preset'\? \(known: \['data', "),
        ("preset", "huge", r"preset: 'huge' is not one of \['paper', 'mini', 'demo', 'smoke'\]"),
        ("studies", "transfer", r"studies: 'transfer' is not valid"),
        ("data.sourec", "local", r"data: unknown key 'sourec'; did you mean 'source'\?"),
        ("evaluation.missing", "ignore", r"evaluation.missing: 'ignore' is not one of \['error', 'proxy'\]"),
    ],
)
def test_config_yaml(root: Path, at: str, value: Any, says: str) -> None:
    path = root / "config/config.yaml"
    change(path, at, value)
    with pytest.raises(PlumblineError, match=rf"^{re.escape(str(path))}: {says}"):
        config.load_config(path)


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        ("recipe.train.stepz", 3, "recipe.train: unknown key 'stepz'; did you mean 'steps'"),
        ("scales.base.huge", {}, "scales.base: .*'huge'"),
        ("scales.base.demo.model.widht", 3, "scales.base.demo.model: unknown key 'widht'; did you mean 'width'"),
        ("scales.base.demo.model.width", "128", "scales.base.demo.model.width: '128' is not of type 'integer'"),
        ("methods.softpick.lable", "S", "methods.softpick: unknown key 'lable'; did you mean 'label'"),
        ("methods.softpick.model.mixr", {}, "methods.softpick.model: unknown key 'mixr'; did you mean 'mixer'"),
        ("runs.base", [{"scale": "base", "methods": "some", "seeds": [1]}], "runs.base.0.methods: 'some' is not"),
        ("runs.base", [{"scale": "base", "methods": "all"}], "runs.base.0: 'seeds' is a required property; add it"),
        ("targets.table2.kind", "tabel", r"targets.table2.kind: 'tabel' is not one of \['table', 'figure'\]"),
    ],
)
def test_a_study(root: Path, at: str, value: Any, says: str) -> None:
    path = root / "config/studies/transfer/study.yaml"
    change(path, at, value)
    with pytest.raises(PlumblineError, match=rf"^{re.escape(str(path))}: {says}"):
        config.load_study("transfer", root)


def test_a_preset(root: Path) -> None:
    change(root / "config/presets/smoke.yaml", "evaluation.limt", 3)
    with pytest.raises(
        PlumblineError, match=r"presets/smoke.yaml: evaluation: unknown key 'limt'; did you mean 'limit'"
    ):
        config.load_preset("smoke", root)


def test_the_same_key_twice(root: Path) -> None:
    path = root / "config/studies/transfer/study.yaml"
    text = path.read_text().replace("    label: Softpick\n", "    label: Softpick\n    label: Soft pick\n")
    path.write_text(text)
    line = text.splitlines().index("    label: Soft pick") + 1
    with pytest.raises(PlumblineError, match=rf"^{re.escape(str(path))}:{line}: the key 'label' stands twice"):
        config.load_study("transfer", root)


def test_files_that_are_not_there_not_yaml_or_misnamed(root: Path) -> None:
    with pytest.raises(PlumblineError, match=r"there is no study 'transfr'; did you mean 'transfer'\?"):
        config.load_study("transfr", root)
    with pytest.raises(PlumblineError, match=r"there is no file .*presets/huge.yaml"):
        config.load_preset("huge", root)
    studies = root / "config/studies"
    (studies / "other").mkdir()
    (studies / "other/study.yaml").write_text((studies / "transfer/study.yaml").read_text())
    with pytest.raises(PlumblineError, match=r"other/study.yaml: study: 'transfer' must be the folder's name, 'other'"):
        config.load_study("other", root)
    (studies / "transfer/study.yaml").write_text("study: [transfer")
    with pytest.raises(PlumblineError, match=r"study.yaml is not YAML: "):
        config.load_study("transfer", root)


def test_numbers_are_numbers(tmp_path: Path) -> None:
    """YAML 1.1, as PyYAML reads it, takes 1e-5 for a text."""
    (tmp_path / "a.yaml").write_text("[1e-5, 1E5, -2e+3, .5e-1, 1.5e3, 1e, e5, 1-5, 12]")
    assert config.read_yaml(tmp_path / "a.yaml") == [1e-5, 1e5, -2e3, 0.05, 1500.0, "1e", "e5", "1-5", 12]


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        ("presets.smoke.packs.bsae", "some", r"presets.smoke.packs.bsae: "),
        (
            "presets.smoke.tokenizer.vocablary",
            3,
            r"presets.smoke.tokenizer: unknown key 'vocablary'; did you mean 'vocabulary'",
        ),
        ("held_out.percent", 0, r"held_out.percent: "),
        ("corpus", "other", r"corpus: 'other' must be the file's name, 'climbmix'"),
    ],
)
def test_a_corpus(root: Path, at: str, value: Any, says: str) -> None:
    change(root / "config/corpora/climbmix.yaml", at, value)
    with pytest.raises(PlumblineError, match=rf"corpora/climbmix.yaml: {says}"):
        corpus.load("climbmix", "smoke", root=root)


def test_what_a_corpus_is_asked_for_must_be_there(root: Path) -> None:
    with pytest.raises(PlumblineError, match=r"there is no .*climbmx.yaml; did you mean 'climbmix'"):
        corpus.load("climbmx", "smoke", root=root)
    with pytest.raises(
        PlumblineError, match=r"climbmix.yaml: local.folder: missing; data.source `local` reads a folder"
    ):
        corpus.load("climbmix", "smoke", "local", root).require_folder()
