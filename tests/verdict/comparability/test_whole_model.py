"""Models of an arm have all of their weights, and one size; a source that does not say it is not known."""

from __future__ import annotations

import pytest

from plumbline.verdict.comparability import whole_model
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.evidence import RunEvidence
from tests.verdict.comparability.arms import compare


@pytest.mark.parametrize(
    ("sizes", "whole", "answer"),
    [
        ((120, 120), (True, True), Answer.HOLDS),
        ((120, 130), (True, True), Answer.TOLD),
        ((120, 120), (True, False), Answer.TOLD),
        ((120, 120), (True, None), Answer.NOT_KNOWN),
    ],
)
def test_each_run_of_an_arm_is_looked_at(
    sizes: tuple[int, ...], whole: tuple[bool | None, ...], answer: Answer
) -> None:
    new = [RunEvidence(value=1.0, parameters=size, whole_model=each) for size, each in zip(sizes, whole, strict=True)]
    lost = RunEvidence(value=None)  # has no model to be asked about
    base = [RunEvidence(value=1.0, parameters=100, whole_model=True), lost]
    assert whole_model.check(compare(base, new)).answer == answer


def test_no_run_with_a_value_is_not_known() -> None:
    arms = compare([], [RunEvidence(value=None, whole_model=True)])
    assert whole_model.check(arms).answer == Answer.NOT_KNOWN
