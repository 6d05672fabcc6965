"""The corpus is fetched by repository, commit and file: here from a bare repository that stands for the public one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.audit_corpus import fetch_sources
from benchmarks.audit_corpus.corpus_files import Paper

FILES = {
    "paper/main.tex": "\\input{tables/a}",
    "paper/tables/a.tex": "as it was",
    "paper/style.sty": "% style",
    "paper/figure.png": "a picture",
    "other/notes.tex": "of another folder",
}


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    process = subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return process.stdout.strip()


@pytest.fixture
def base(tmp_path: Path) -> tuple[str, str]:
    """The address of a folder of repositories, and the first of two commits of owner/name there."""
    work, bare = tmp_path / "work", tmp_path / "hub/owner/name"
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "--quiet", str(work))
    git(work, "add", ".")
    git(work, "commit", "--quiet", "-m", "first")
    commit = git(work, "rev-parse", "HEAD")
    (work / "paper/tables/a.tex").write_text("as it became", encoding="utf-8")
    git(work, "commit", "--quiet", "-am", "second")
    git(tmp_path, "clone", "--quiet", "--bare", str(work), str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(bare, "config", "uploadpack.allowFilter", "true")
    return f"file://{tmp_path / 'hub'}", commit


def fetch(monkeypatch: pytest.MonkeyPatch, base: str, folder: Path, *papers: Paper) -> int:
    monkeypatch.setattr(fetch_sources, "read_papers", lambda split: papers)
    monkeypatch.setattr(sys, "argv", ["fetch_sources", str(folder), "--base", base])
    return fetch_sources.main()


def test_a_paper_is_fetched_at_its_commit_and_from_its_folder(
    tmp_path: Path, base: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, commit = base
    paper = Paper("mine", "owner/name", commit, "paper/main.tex", "ACL", "work")
    assert fetch(monkeypatch, address, tmp_path / "out", paper) == 0
    files = {str(p.relative_to(tmp_path / "out/mine")): p.read_text() for p in (tmp_path / "out").rglob("*.*")}
    assert files == {"main.tex": "\\input{tables/a}", "tables/a.tex": "as it was", "style.sty": "% style"}
    assert paper.main(tmp_path / "out").is_file()


def test_what_cannot_be_had_is_told_and_counted(
    tmp_path: Path, base: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address, commit = base
    papers = [
        Paper("gone", "owner/gone", commit, "main.tex", "ACL", "work"),
        Paper("unknown", "owner/name", "0" * 40, "paper/main.tex", "ACL", "work"),
        Paper("moved", "owner/name", commit, "paper/moved.tex", "ACL", "work"),
        Paper("mine", "owner/name", commit, "paper/main.tex", "ACL", "work"),
    ]
    assert fetch(monkeypatch, address, tmp_path / "out", *papers) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines if "could not be had" in line] == ["gone", "unknown", "moved"]
