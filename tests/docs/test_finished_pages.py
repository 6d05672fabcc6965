"""The finished pages that the documentation has: whole, small, the same every time, and as README tells them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

#: Bytes of the workbench, and of the audits, at most.
ROOM = {"workbench": 1_450_000, "audits": 550_000}


@pytest.fixture(scope="module")
def night(repository: Path) -> dict[str, Any]:
    """The script that keeps, builds and draws the night."""
    return runpy.run_path(str(repository / "docs/_site/night.py"))


@pytest.fixture(scope="module")
def workbench(night: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "workbench"
    night["build"](folder)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def find_broken(folder: Path) -> list[tuple[str, str]]:
    """Links of pages that lead out of their folder or to nothing in it."""
    return [
        (page.name, link)
        for page in folder.rglob("*.html")
        for link in re.findall(r'(?:href|src)="(?!data:)([^"#?]+)', page.read_text(encoding="utf-8"))
        if not (target := (page.parent / unquote(link)).resolve()).is_relative_to(folder) or not target.is_file()
    ]


def test_the_workbench_is_small_whole_and_the_same_again(
    night: dict[str, Any], workbench: Path, tmp_path: Path
) -> None:
    files = read_files(workbench)
    assert sum(map(len, files.values())) <= ROOM["workbench"]
    assert find_broken(workbench) == []
    night["build"](tmp_path / "again")
    assert read_files(tmp_path / "again") == files


def test_the_audits_are_small_whole_and_name_every_paper(repository: Path, tmp_path: Path) -> None:
    """To mend a picture: python docs/_site/audits.py."""
    audits = runpy.run_path(str(repository / "docs/_site/audits.py"))
    audits["build"](tmp_path / "audits")
    for picture, drawn in audits["draw_all"](tmp_path / "audits").items():
        assert picture.read_text(encoding="utf-8") == drawn, picture.name
    assert find_broken(tmp_path / "audits") == []
    assert sum(map(len, read_files(tmp_path / "audits").values())) <= ROOM["audits"]
    first = (tmp_path / "audits/index.html").read_text(encoding="utf-8")
    for study in ("transfer", "premature", "query_free", "quack", "key_norms"):
        assert f">{study}</a>" in first.replace("<wbr>", "")
    printed = next(tmp_path.glob("audits/audits/transfer-*.html")).read_text(encoding="utf-8")
    assert re.search(
        r'<section id="table-2">.*?>HyperConnections<.*?class="contradicts"[^>]*>2.6e-21<', printed, re.DOTALL
    )


def test_the_pictures_are_of_that_night(night: dict[str, Any], workbench: Path) -> None:
    """To mend: python docs/_site/night.py."""
    page = (workbench / "index.html").read_text(encoding="utf-8")
    for picture, drawn in night["draw_all"](page).items():
        assert picture.read_text(encoding="utf-8") == drawn, picture.name


def test_the_caption_says_what_is_true_of_the_night(repository: Path, night: dict[str, Any]) -> None:
    """README and the first page have the same."""
    ideas = night["IDEAS"]
    picture = (repository / "docs/_assets/night.svg").read_text(encoding="utf-8")
    kept = re.findall(r'class="try kept">.*?<text class="name"[^>]*>([^<]*)<', picture, re.DOTALL)
    helpful = {name for name, effect in ideas.items() if isinstance(effect, float) and effect > 0}
    assert len(re.findall(r'class="try ', picture)) == len(ideas)
    assert helpful - set(kept) == {min(helpful, key=ideas.__getitem__)} and set(kept) < helpful
    caption = (
        f"*A night of {len(ideas)} changes to a toy trainer, {len(helpful)} of which help: {len(kept)} are kept, all "
        "of them real, and the smallest is missed; what else looks like progress is luck.*"
    )
    for page in ("README.md", "docs/index.md"):
        assert caption in " ".join((repository / page).read_text(encoding="utf-8").split()), page
