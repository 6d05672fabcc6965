"""An arm that spreads wider is told with both deviations, as often as the level says where both spread alike."""

from __future__ import annotations

import random

from plumbline.verdict.comparability import spread
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence, RunsSummary
from tests.verdict.comparability.arms import compare


def answer(theirs: list[float], ours: list[float], *, paired: bool = False) -> CheckAnswer:
    base, new = ([RunEvidence(value=value) for value in values] for values in (theirs, ours))
    return spread.check(compare(base, new, paired=paired))


def test_a_wider_arm_is_told_with_both_deviations() -> None:
    wide = answer([3.0, 3.001, 2.999], [2.9, 3.1, 3.0])
    assert wide.answer == Answer.TOLD
    assert "standard deviation 0.1 of `new` and 0.001" in wide.text
    assert "Student's test" in wide.text and float(wide.numbers["p"] or 1) < 0.05
    assert answer([2.9, 3.1, 3.0], [3.0, 3.001, 2.999]).text.startswith("`base` spreads wider")
    assert answer([3.0, 3.001, 2.999], [2.9, 3.1, 3.0], paired=True).answer == Answer.HOLDS
    assert answer([1e200, 3e200, 2e200], [1e200, 3e200, 2e200]).answer == Answer.HOLDS
    assert answer([3.0, 3.1], [3.0]).answer == Answer.NOT_KNOWN


def test_arms_that_spread_alike_are_told_at_the_level() -> None:
    draw = random.Random(1).gauss
    count = sum(
        answer([draw(0, 1) for _ in range(5)], [draw(0, 1) for _ in range(3)]).answer == Answer.TOLD
        for _ in range(2000)
    )
    assert 70 <= count <= 130  # 100 expected, standard deviation 10


def test_printed_spreads_are_compared_too() -> None:
    summaries = {"base": RunsSummary(mean=1, std=0.1, n=5), "new": RunsSummary(mean=1, std=0.9, n=5)}
    arms = ComparedArms(evidence=Evidence(metric="acc", summaries=summaries), baseline="base", candidate="new")
    assert spread.check(arms).answer == Answer.TOLD
