"""The page of questions: twelve, each answered in a few lines that lead to a page."""

from __future__ import annotations

import re
from pathlib import Path


def test_each_answer_is_short_and_leads_on(repository: Path) -> None:
    _, *parts = (repository / "docs/faq.md").read_text().split("\n## ")
    assert len(parts) == 12
    for part in parts:
        question, *answer = part.strip().splitlines()
        assert question.endswith(("?", "What now?")), question
        assert len([line for line in answer if line]) <= 4, question
        assert re.search(r"\]\([^)]+\)", " ".join(answer)), question


def test_the_verbs_that_it_names_are_there(repository: Path) -> None:
    from plumbline.cli import VERBS

    named = set(re.findall(r"`plumbline (\S+?)[ `]", (repository / "docs/faq.md").read_text()))
    assert {"try", "noise", "new"} <= named <= set(VERBS)
