"""Numbers of sentences that name a cell by the labels of its row and column, and those that may be of another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder

TABLE = """Model,GSM8K,MATH (↑),Params,GSM8K gain
LLaMA,41.2,20.3,6.74,1.1
Sparrow,54.46,33.3,7.01,2.2
Sparrow-Large,61.0,39.1,13.0,3.3
"""


def audit_text(folder: Path, *sentences: str) -> PaperAudit:
    (folder / "t.csv").write_text(TABLE)
    passages = [
        {"kind": "text", "section": "", "where": f"p.tex:{n}", "text": text} for n, text in enumerate(sentences)
    ]
    (folder / "sources.json").write_text(json.dumps({"passages": passages}))
    return audit_folder(folder)


@pytest.mark.parametrize(
    ("sentence", "right", "wrong"),
    [
        ("Our model, Sparrow, reaches {} on GSM8K.", "54.5", "55.4"),
        ("Sparrow has {}% on GSM8K and 33.3% on MATH.", "54.5", "53.5"),
        ("For Sparrow-Large, MATH is {}.", "39.1", "39.7"),
    ],
)
def test_a_number_unlike_the_cell_its_sentence_names_is_likely(
    tmp_path: Path, sentence: str, right: str, wrong: str
) -> None:
    audit = audit_text(tmp_path, sentence.format(right))
    assert (audit.likely, audit.sentences_read) == ([], 1)
    assert [row["verdict"] for row in audit.rows] == ["match"] * max(1, sentence.count(" on "))
    audit = audit_text(tmp_path, sentence.format(wrong))
    (row,) = audit.likely
    assert audit.answer == "likely" and (row["printed"], row["source"]) == (wrong, "p.tex:0")
    assert "Sparrow" in str(row["explanation"]) and str(row["explanation"]).endswith("another setting.")


@pytest.mark.parametrize(
    "sentence",
    [
        "Sparrow improves by 55.4 on GSM8K.",
        "Sparrow is better than LLaMA, with 55.4 on GSM8K.",
        "Without the sparse heads Sparrow reaches 53.5 on GSM8K.",
        "Sparrow and LLaMA reach 55.4 on GSM8K.",
        "Sparrow-XL reaches 55.4 on GSM8K.",
        "Sparrow reaches 22.5 on GSM8K gain.",
        "Sparrow reaches 91.0 on GSM8K.",
        "Sparrow has 7.1 billion parameters and is good on GSM8K.",
        "Sparrow reaches 55.4 on the harder problems of GSM8K.",
        "Sparrow reaches -55.4 on GSM8K.",
    ],
)
def test_a_number_that_can_be_of_something_else_is_not_read(tmp_path: Path, sentence: str) -> None:
    audit = audit_text(tmp_path, sentence)
    assert (audit.rows, audit.sentences_read) == ([], 0)
