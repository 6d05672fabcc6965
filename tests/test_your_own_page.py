"""What docs/your-own.md, your-own-data.md and own-verdict.md have their reader type can be planned."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from plumbline.project import load
from plumbline.specs import study_config
from plumbline.specs.corpus import CorpusFile
from plumbline.specs.spec_changes import change_spec, overlay
from plumbline.specs.study_files import VerdictFile
from plumbline.specs.yaml_files import check, load_config


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/your-own.md").read_text()


def yaml_with(page: str, text: str) -> str:
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.S) if text in block)
    return str(block)


def command(page: str, start: str) -> list[str]:
    """The arguments of a command, without the remark after it."""
    line = next(line for line in page.splitlines() if line.startswith(f"$ {start}"))
    return shlex.split(line, comments=True)[1:]


def test_the_command_of_another_size_can_be_meant(page: str) -> None:
    planned = load(load_config())
    args = command(page, "plumbline train")
    spec = change_spec(planned.runs[args[2]].spec, [args[n + 1] for n, word in enumerate(args) if word == "--set"])
    assert (spec.model.layers, spec.train.steps) == (6, 100)
    packs = command(page, "snakemake work/demo/corpora/climbmix/packs")[1:]
    run = planned.runs["transfer/base/baseline/s42"]
    assert packs == [
        str(Path(path).parent) for path in (planned.paths.pack_manifest(run), planned.paths.validation_manifest(run))
    ]
    (items,) = command(page, "snakemake work/demo/corpora/climbmix/items")[1:]
    assert items == planned.paths.items("climbmix", "climb12")


def test_the_files_are_what_they_are_said_to_be(page: str, repository: Path, tmp_path: Path) -> None:
    for name in ("config", "studies"):
        shutil.copytree(repository / name, tmp_path / name)
    folder = tmp_path / "studies/mine"
    folder.mkdir()
    (folder / "study.yaml").write_text(yaml_with(page, "study: mine"))
    mine = study_config.load("mine", "demo", tmp_path)
    assert "table2" in mine.definition["targets"] and [run for run in mine.runs if "/both/" in run]
    own = (repository / "docs/own-verdict.md").read_text()
    check(yaml.safe_load(yaml_with(own, "cosine_attention")), VerdictFile, "my/cosine.yaml")
    path, data = repository / "config/corpora/climbmix.yaml", (repository / "docs/your-own-data.md").read_text()
    local = yaml.safe_load(yaml_with(data, "folder: /data/my-texts"))
    check(overlay(yaml.safe_load(path.read_text()), local), CorpusFile, path)
