"""Where runs of an arm end is told if they end apart, or early; two arms of different length are the budget's."""

from __future__ import annotations

from plumbline.verdict.comparability import finished
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.evidence import RunEvidence
from tests.verdict.comparability.arms import compare


def answer(theirs: list[RunEvidence], ours: list[RunEvidence]) -> CheckAnswer:
    return finished.check(compare(theirs, ours))


def at(step: float | None, planned: int | None = None) -> RunEvidence:
    return RunEvidence(value=1.0, step=step, planned=planned)


def test_runs_of_an_arm_that_end_apart_or_early_are_told() -> None:
    apart = answer([at(1000)] * 3, [at(1000), at(900), at(1000)])
    assert apart.answer == Answer.TOLD and apart.text == "runs of `new` end at steps 900 to 1,000"
    early = answer([at(1000, 1000)] * 2, [at(900, 1000)] * 2)
    assert early.answer == Answer.TOLD and "`new` stopped at step 900 of 1,000" in early.text
    at_claimed_step = RunEvidence(value=1.0, step=900, steps=(900, 1000), planned=1000)
    assert answer([at(1000, 1000)], [at_claimed_step]).answer == Answer.HOLDS, "it went on after the step that counts"


def test_arms_that_each_end_at_one_step_hold() -> None:
    assert answer([at(1000)] * 3, [at(4000)] * 3).answer == Answer.HOLDS, "equal budget tells that"
    assert answer([at(None)] * 3, [at(None)] * 3).answer == Answer.NOT_KNOWN
    lost = RunEvidence(value=None, step=10)
    assert answer([at(1000)] * 3, [at(1000), lost]).answer == Answer.HOLDS, "a lost run is the arm's outcome"
