"""Sums of a paper's own setup: tokens, device hours, costs; in columns and rows, right, wrong, and of other runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder


def audit_table(folder: Path, text: str, sentence: str = "") -> PaperAudit:
    (folder / "t.csv").write_text(text)
    passage = {"kind": "text", "section": "Cost", "where": "paper.tex:9", "text": sentence}
    (folder / "sources.json").write_text(json.dumps({"passages": [passage] if sentence else []}))
    return audit_folder(folder)


TOKENS = (
    "Model,Steps,Batch size,Context length,Tokens\nS,20000,256,1024,5.2B\nM,40000,512,2048,41.9B\n"
    'L,"100,000",1024,4096,419B\n'
)
HOURS = "Model,GPUs,Hours,GPU hours\nS,8,120,960\nM,64,31.5,2016\nL,512,200,102.4K\n"
COST = "Stage,Pre-training,Extension,Total\nH800 GPU hours,2664K,119K,2783K\nin USD,$5.328M,$0.238M,$5.566M\n"
PRICE = "We take a price of $2 per GPU hour."


@pytest.mark.parametrize(
    ("text", "planted", "sentence", "quantity"),
    [
        (TOKENS, ("41.9B", "49.1B"), "", "t, M, Tokens"),
        (HOURS, ("2016", "2106"), "", "t, M, GPU hours"),
        (COST, ("$0.238M", "$0.328M"), PRICE, "t, in USD, Extension"),
    ],
)
def test_a_sum_of_the_setup_is_that_of_its_parts(
    tmp_path: Path, text: str, planted: tuple[str, str], sentence: str, quantity: str
) -> None:
    audit = audit_table(tmp_path, text, sentence)
    assert audit.answer == "nothing contradicts" and any("3 of 3 agree" in relation for relation in audit.relations)
    audit = audit_table(tmp_path, text.replace(*planted), sentence)
    assert quantity in [row["quantity"] for row in audit.contradictions]


def test_hours_that_are_days_are_left_out(tmp_path: Path) -> None:
    audit = audit_table(tmp_path, HOURS + "XL,256,2 days,12.3K\n")
    assert audit.answer == "nothing contradicts" and any("XL" in text for text in audit.dropped)
    assert len(audit_table(tmp_path, HOURS.replace("2016", "2106") + "XL,256,2 days,12.3K\n").contradictions) == 1


def test_a_single_setup_accuses_nobody(tmp_path: Path) -> None:
    setup = "Setting,Value\nSteps,20000\nBatch size,256\nContext length,1024\nTokens,{}\n"
    answers = [audit_table(tmp_path, setup.format(tokens)).answer for tokens in ("5.2B", "5.4B", "300B")]
    assert answers == ["nothing contradicts", "likely", "nothing was checked"]


def test_a_price_is_known_only_where_the_text_has_one(tmp_path: Path) -> None:
    wrong = COST.replace("$5.328M", "$5.238M").replace("$5.566M", "$5.476M")
    for sentence in ("", "It costs $2 per GPU hour, or $3 per GPU hour elsewhere."):
        assert audit_table(tmp_path, wrong, sentence).contradictions == []
