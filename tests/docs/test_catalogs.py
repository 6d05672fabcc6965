"""What catalogs and citers read: the workflow's card, the page of the configuration, and a citation for each paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflow.project_copy import Project


def keys(mapping: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in mapping.items():
        if isinstance(value, dict) and value:
            yield from keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def test_the_workflow_catalog_finds_what_it_looks_for(repository: Path) -> None:
    usage = yaml.safe_load((repository / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["software-stack-deployment"].keys() == {"conda", "apptainer", "apptainer+conda"}
    # With a folder `workflow`, the catalog looks for the workflow there alone.
    text = (repository / "workflow/Snakefile").read_text()
    (included,) = re.findall(r'^include: "(.*)"$', text, re.MULTILINE)
    assert (repository / "workflow" / included).resolve() == repository / "Snakefile"
    readme = (repository / "README.md").read_text().lower()
    assert "snakemake" in readme and "workflow" in readme


@pytest.mark.workflow
def test_the_catalogs_action_finds_the_workflow_in_its_folder(repository: Path, tmp_path: Path) -> None:
    """As it calls Snakemake: from the top, in `.test`, which holds links alone."""
    project = Project.copy(repository, tmp_path / "copy")
    assert {path.name for path in (project.root / ".test").iterdir() if path.is_symlink()} >= {"config", "studies"}
    called = ("--snakefile", "workflow/Snakefile", "--directory", ".test", "--config", "preset=smoke", "--cores", "1")
    process = project.python("-m", "snakemake", *called, "-n", "results/smoke/key_norms/table1.csv")
    assert process.returncode == 0 and re.search(r"^pretrain +\d+$", process.stdout, re.MULTILINE), process.stdout[
        -3000:
    ]
    assert not (project.root / "work").exists() and not (project.root / ".snakemake").exists()


def test_every_key_of_the_configuration_is_on_its_page(repository: Path) -> None:
    page = (repository / "config/README.md").read_text()
    key_rows = re.findall(r"^\| `([\w.]+)` \|[^|]*\| ([^|]*) \|", page, re.MULTILINE)
    configuration = yaml.safe_load((repository / "config/config.yaml").read_text())
    assert [key for key, _ in key_rows] == list(keys(configuration))
    for key, default in key_rows:
        value = configuration
        for part in key.split("."):
            value = value[part]
        assert default == (f"`{value}`" if value else {"": "nothing"}.get(str(value), "empty")), key


def test_what_is_made_on_request_is_listed_with_its_study(repository: Path) -> None:
    page = (repository / "docs/targets.md").read_text().partition("\n## On request\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE)
    requested = set()
    for file in repository.glob("studies/*/study.yaml"):
        targets = yaml.safe_load(file.read_text()).get("targets", {})
        names = {name for name, entry in targets.items() if entry.get("on_request")}
        rows = re.findall(r"^\| (`.*) \| on request: ", file.with_name("README.md").read_text(), re.MULTILINE)
        assert names == set(re.findall(r"`(\w+)`", " ".join(rows))), file
        requested |= {(name, "each" if name == "alternatives" else file.parent.name) for name in names}
    assert sorted(listed) == sorted(requested)


def test_each_paper_is_cited_as_its_study_names_it(repository: Path) -> None:
    cff = yaml.safe_load((repository / "CITATION.cff").read_text())
    cited = {re.sub(r"\W", "", reference["title"]).lower(): reference for reference in cff["references"]}
    studies = sorted(repository.glob("studies/*/study.yaml"))
    assert len(studies) == len(cited) == 5
    for study in studies:
        paper = yaml.safe_load(study.read_text())["paper"]
        bib = (study.parent / "CITATION.bib").read_text()
        (title,) = re.findall(r"^  title +=\s+\{(.*)\},$", bib, re.MULTILINE)
        plain = re.sub(r"\W", "", title.replace("$", "")).lower()
        assert plain == re.sub(r"\W", "", paper["title"]).lower() and plain in cited, study
        assert bib.count("{") == bib.count("}") and paper.get("link", "") in bib
        families = [reference.get("family-names") for reference in cited[plain]["authors"]]
        assert "authors" not in paper or families == [name.split()[-1] for name in paper["authors"]]
        assert cited[plain].get("url") == paper.get("link")
