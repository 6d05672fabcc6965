"""Each study names its paper, and its README names the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.specs import study_config
from plumbline.specs.yaml_files import studies


@pytest.mark.parametrize("study", studies())
def test_the_readme_of_a_study_names_its_paper(repository: Path, study: str) -> None:
    paper = study_config.paper_of(study)
    assert paper is not None
    readme = " ".join((repository / "studies" / study / "README.md").read_text(encoding="utf-8").split())
    assert paper.title in readme and paper.link in readme and all(author in readme for author in paper.authors)
    assert ("**summary**" in readme) == (paper.kind == "summary")
    for page in ("README.md", "studies/README.md"):
        assert paper.short in (repository / page).read_text(encoding="utf-8"), page
