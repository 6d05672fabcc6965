"""Each page has a place by what a reader wants of it, and a command is spelt in one way."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.cli import VERBS

KINDS = ["Plumbline", "Tutorial", "How-to", "Reference", "Explanation", "Internals"]
ELSEWHERE = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "studies.md": "studies/README.md",
    "benchmarks.md": "benchmarks/README.md",
}


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python's objects."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


@pytest.fixture(scope="module")
def nav(repository: Path) -> list[dict[str, Any]]:
    return yaml.load((repository / "mkdocs.yml").read_text(), Loader)["nav"]


def pages_of(part: Any) -> list[str]:
    """The files that a part of the contents names."""
    if isinstance(part, str):
        return [part]
    return [page for entry in (part if isinstance(part, list) else part.values()) for page in pages_of(entry)]


def list_written_pages(repository: Path) -> list[Path]:
    """The pages that somebody wrote: those of the site, and those of folders that travel along with it."""
    patterns = (
        "*.md",
        "docs/**/*.md",
        "*/README.md",
        "config/tasks/README.md",
        "studies/*/*.md",
        "examples/*/README.md",
    )
    return sorted({page for pattern in patterns for page in repository.glob(pattern)})


def test_contents_are_by_kind_and_name_every_page_once(repository: Path, nav: list[dict[str, Any]]) -> None:
    assert [kind for part in nav for kind in part] == KINDS
    listed_pages = pages_of(nav)
    docs = repository / "docs"
    there = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} | ELSEWHERE.keys()
    assert len(listed_pages) == len(set(listed_pages)) and set(listed_pages) == there
    assert [pages_of(part[kind]) for part in nav for kind in part if kind in ("Plumbline", "Tutorial")] == [
        ["index.md"],
        ["tutorial.md"],
    ]


def test_a_verb_is_spelt_as_a_verb(repository: Path) -> None:
    """Where `plumbline x` does it, no page writes `python -m plumbline...`."""
    modules = {verb.module for verb in VERBS.values()}
    spellings = [
        (str(page.relative_to(repository)), module)
        for page in list_written_pages(repository)
        if page.name != "CHANGELOG.md"
        for module in re.findall(r"python -m (plumbline(?:\.\w+)+)", page.read_text(encoding="utf-8"))
        if module in modules
    ]
    assert spellings == []


def test_a_measured_page_names_the_command_that_measures(repository: Path) -> None:
    """Whoever repeats what only writes the page again repeats no measurement."""
    pages = [page for page in (repository / "benchmarks").glob("*.md") if page.name != "README.md"]
    assert len(pages) > 20
    assert [page.name for page in pages if "--write-page-only" in page.read_text(encoding="utf-8")] == []


def test_the_first_page_leads_to_each_kind(repository: Path) -> None:
    page = (repository / "docs/index.md").read_text(encoding="utf-8")
    assert re.search(r"^\*\*.+\?\*\*", page, re.MULTILINE)
    assert re.search(r"^!\[.{20,}\]\(_assets/\S+\)$", page, re.MULTILINE)
    for page_of_a_kind in ("tutorial.md", "add-a-method.md", "command.md", "statistics.md", "../CONTRIBUTING.md"):
        assert f"]({page_of_a_kind})" in page


def test_the_page_on_targets_shows_the_rules_of_today(repository: Path) -> None:
    """To mend: python docs/_site/rules_picture.py."""
    script = runpy.run_path(str(repository / "docs/_site/rules_picture.py"))
    assert (repository / "docs/_assets/rules.svg").read_text() == script["draw"](script["read_rules"]())
    assert "](_assets/rules.svg)" in (repository / "docs/targets.md").read_text()
