"""The files that docs/quick.md and your-own-data.md have their reader write are read."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from plumbline.specs.corpus import CorpusFile
from plumbline.specs.spec_changes import overlay
from plumbline.specs.study_files import VerdictFile
from plumbline.specs.yaml_files import check


def yaml_with(page: Path, text: str) -> str:
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), flags=re.S) if text in block)
    return str(block)


def test_the_files_are_what_they_are_said_to_be(repository: Path) -> None:
    check(yaml.safe_load(yaml_with(repository / "docs/quick.md", "cosine_attention")), VerdictFile, "my/cosine.yaml")
    path = repository / "config/corpora/climbmix.yaml"
    local = yaml.safe_load(yaml_with(repository / "docs/your-own-data.md", "folder: /data/my-texts"))
    check(overlay(yaml.safe_load(path.read_text()), local), CorpusFile, path)
