"""What README shows is what the commands print."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from plumbline.audit.audit_csv import as_markdown, build, choose_studies, summary
from plumbline.verdict.own_trainer import trainer_file


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


def test_it_shows_a_picture_first(readme: str, repository: Path) -> None:
    picture = re.search(r'srcset="(\S+)".* src="(\S+)" alt="\S', "\n".join(readme.splitlines()[:6]))
    assert picture is not None
    for path in picture.groups():
        assert b"<svg" in (repository / path).read_bytes()[:1000]


def test_the_lines_of_the_audit_are_those_that_it_prints(readme: str, repository: Path) -> None:
    studies = choose_studies()
    audited = build(studies)
    printed = as_markdown(summary(audited, studies)).splitlines()
    readme_lines = [line for line in readme.splitlines() if re.match(r"\| (study|transfer|all)  ", line)]
    assert len(readme_lines) == 3 and set(readme_lines) <= set(printed)
    rows, mismatches = (int(cell) for cell in (printed[-1].split("|")[-2], printed[-1].split("|")[-3]))
    kinds = Counter(row["evidence_kind"] for row in audited if row["verdict"] == "mismatch")
    kinds_of_all = dict(kinds)
    contradictions = kinds.pop("contradiction")
    counts = f"Of these {rows} checks {mismatches} fail: {contradictions} contradict the paper, {kinds.total()} only"
    assert counts in " ".join(readme.split())
    paper = " ".join((repository / "paper.md").read_text(encoding="utf-8").split())
    assert f"{rows} rows were written; {mismatches} fail, {kinds_of_all['contradiction']} of them" in paper


def test_a_try_takes_the_runs_that_it_says(readme: str) -> None:
    settings = trainer_file.DecidePart()
    words = " ".join(readme.split())
    assert f"compares {settings.baseline_runs} runs of the script as it is, made once" in words
    assert (
        f"with at most {settings.max_runs} of the changed one" in words
        and f"kept, {settings.baseline_runs} more of each are run" in words
    )


def test_every_paper_is_named_with_its_authors(readme: str) -> None:
    for study in ("transfer", "premature", "query_free", "quack", "key_norms"):
        assert f"](studies/{study}/README.md)" in readme
