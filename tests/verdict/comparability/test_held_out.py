"""Held-out texts and items that are in the training texts too are told with their numbers."""

from __future__ import annotations

from plumbline.verdict.comparability import held_out
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.evidence import RunEvidence, SharedTexts
from tests.verdict.comparability.arms import compare

OPTION = "config/corpora/mine.yaml: copies"


def check(*counts: SharedTexts | None) -> CheckAnswer:
    runs = [RunEvidence(value=1.0, shared_texts=each) for each in counts]
    return held_out.check(compare(runs, runs))


def test_copies_are_told_once_with_option_that_leaves_them_out() -> None:
    counts = SharedTexts(held_out=111, shared=19, unit="documents", option=OPTION)
    answer = check(counts, counts)
    assert answer.answer == Answer.TOLD and answer.text.count("19 of 111 held-out documents") == 1
    assert OPTION in answer.text and answer.numbers == {"held_out": 111, "shared": 19, "items_shared": None}


def test_items_count_where_no_text_is_a_copy() -> None:
    counts = SharedTexts(held_out=111, shared=0, unit="pieces", option=OPTION, items=400, items_shared=3)
    answer = check(counts)
    assert answer.answer == Answer.TOLD and answer.text.startswith("3 of 400 items"), answer.text


def test_none_shared_holds_and_not_counted_is_not_known() -> None:
    assert check(None).answer == Answer.NOT_KNOWN
    answer = check(SharedTexts(held_out=111, shared=0, unit="documents", option=OPTION))
    assert answer.answer == Answer.HOLDS and "items" not in answer.text
