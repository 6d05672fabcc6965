"""What a sentence says by itself: changes between two numbers, tests with their p; right, wrong, and not to be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder


def audit_text(folder: Path, *paragraphs: str) -> PaperAudit:
    (folder / "t.csv").write_text("m,A\nx,1.5\ny,2.5\n")
    passages = [
        {"kind": "text", "section": "Results", "where": f"paper.tex:{n}", "text": text}
        for n, text in enumerate(paragraphs, 1)
    ]
    (folder / "sources.json").write_text(json.dumps({"passages": passages}))
    return audit_folder(folder)


CHANGES = {
    "It cuts perplexity from 26.6 to 24.8, a {} reduction.": ("6.8 %", "8.6 %"),
    "It cuts perplexity from 26.6 to 24.8 (-{}).": ("6.8%", "7.8%"),
    "Perplexity falls by {} (from 26.6 to 24.8).": ("6.8%", "9.8%"),
    "Ours has a {} relative reduction in word error from 26.6 to 24.8.": ("6.8%", "6.2%"),
    "Memory shrinks from 80 GB to 20 GB, i.e. {} less.": ("4x", "5x"),
    "Accuracy rises from 61.2% to 64.0%, by {}.": ("2.8 points", "3.8 points"),
    "Accuracy rises from 61.2% to 64.0% ({}).": ("+2.8%", "+3.8%"),
    "Accuracy rises 61.2 → 64.0 ({}) on the test set.": ("+2.8%", "+5.8%"),
    "Accuracy rises from 62.1% to 68.4%, a gain of {}.": ("6.3 points", "6.8 points"),
    "It is {} faster, from 100 ms to 40 ms.": ("2.5x", "2.9x"),
    "Training went from 1.2M to 600K tokens, a {} reduction.": ("2.0x", "2.5x"),
    "The cost goes from $12,500 to $9,000, a {} saving.": ("28%", "38%"),
    "It was significant, t(28) = 2.20, p = {}.": (".036", ".063"),
    "It was significant (F(2, 45) = 4.51, p = {}).": ("0.016", "0.046"),
    "They differ, χ^2(2, N = 90) = 8.10, p = {}.": ("0.017", "0.071"),
    "They differ, z = 2.10, p = {}.": ("0.036", "0.063"),
    "They are related, r(48) = 0.31, p = {}.": ("0.028", "0.28"),
    "It was significant, t(28) = 1.20, p {}.": ("> .05", "< .05"),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_a_sentence_is_held_against_itself(tmp_path: Path, sentence: str) -> None:
    right, wrong = CHANGES[sentence]
    audit = audit_text(tmp_path, f"First. {sentence.format(right)} Last.")
    assert audit.answer == "nothing contradicts" and len(audit.rows) == 1
    audit = audit_text(tmp_path, f"First. {sentence.format(wrong)} Last.")
    assert [row["source"] for row in audit.contradictions] == ["paper.tex:1"]


@pytest.mark.parametrize(
    "sentence",
    [
        "It cuts perplexity from 26.6 to 24.8, and accuracy rises by 2.1%.",
        "It cuts perplexity from 26.6 to 24.8 and memory from 10 to 5, a 9% and 50% reduction respectively.",
        "Going from 12 to 24 layers gives a 3.1% improvement.",
        "From 2017 to 2019, 12% of papers did so.",
        "It is up to 3.2x faster than before.",
        "We had t = 5 and p = 3 in all runs.",
        "Accuracy rises from 70.1 to 72.4, a gain of 5 points over the baseline.",
    ],
)
def test_what_is_not_said_is_not_read(tmp_path: Path, sentence: str) -> None:
    assert audit_text(tmp_path, sentence).answer == "nothing was checked"


@pytest.mark.parametrize(
    "sentence",
    [
        "Raising the batch from 32 to 64, a 3.1% improvement, is enough.",  # the two are a setting
        "It cuts perplexity from 26.6 to 24.8, a roughly 9% reduction.",
        "It was significant, t(28) = 1.80, p = .041.",  # one-sided
    ],
)
def test_what_may_be_meant_otherwise_accuses_nobody(tmp_path: Path, sentence: str) -> None:
    assert audit_text(tmp_path, sentence).contradictions == []
