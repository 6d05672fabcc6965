"""The page of questions: each is a question whose answer leads to a page, and its verbs are there."""

from __future__ import annotations

import re
from pathlib import Path


def test_each_answer_leads_on(repository: Path) -> None:
    _, *parts = (repository / "docs/faq.md").read_text().split("\n## ")
    assert parts
    for part in parts:
        question, *answer = part.strip().splitlines()
        assert question.endswith(("?", "What now?")), question
        assert re.search(r"\]\([^)]+\)", " ".join(answer)), question


def test_the_verbs_that_it_names_are_there(repository: Path) -> None:
    from plumbline.cli import VERBS

    verbs_named = set(re.findall(r"`plumbline (\S+?)[ `]", (repository / "docs/faq.md").read_text()))
    assert {"try", "noise", "new"} <= verbs_named <= set(VERBS)
