"""Where seeds differ about as much as one seed from itself, there is no verdict; both numbers are named."""

from __future__ import annotations

import pytest

from plumbline.verdict.comparability import seed_beside_rerun
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence


@pytest.mark.parametrize(
    ("values", "again", "answer", "text"),
    [
        ((3.0, 3.01, 2.99), None, Answer.NOT_KNOWN, "run twice"),
        ((3.0, 3.01, 2.99), 3.0, Answer.HOLDS, "seed 0 of start gave the same number twice"),
        ((3.0, 3.01, 2.99), 3.004, Answer.HOLDS, "differs by 0.004, and seeds spread by 0.01"),
        ((3.0, 3.00001, 2.99999), 3.00001, Answer.REFUSES, "differs by 1e-05, and seeds spread by 1e-05: the seed may"),
    ],
)
def test_the_spread_of_seeds_is_held_against_a_rerun(
    values: tuple[float, ...], again: float | None, answer: Answer, text: str
) -> None:
    runs = {str(seed): RunEvidence(value=value, seed=str(seed)) for seed, value in enumerate(values)}
    runs["0"] = RunEvidence(value=values[0], seed="0", rerun_value=again)
    evidence = Evidence(metric="loss", runs={"baseline": runs})
    arms = ComparedArms(evidence=evidence, baseline="baseline", candidate="new", labels={"baseline": "start"})
    checked = seed_beside_rerun.check(arms)
    assert checked.answer == answer and text in checked.text, checked
