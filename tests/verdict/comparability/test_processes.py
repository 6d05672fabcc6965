"""How runs ended stands beside the verdict, each thing once with its seeds; what is not known is said."""

from __future__ import annotations

from plumbline.verdict.comparability import processes
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence


def compared(*remarks: tuple[str, ...] | None) -> ComparedArms:
    runs = {str(seed): RunEvidence(value=1.0, seed=str(seed), remarks=each) for seed, each in enumerate(remarks)}
    evidence = Evidence(metric="loss", runs={"baseline": {"9": RunEvidence(value=1.0, seed="9")}, "new": runs})
    return ComparedArms(evidence=evidence, baseline="baseline", candidate="new")


def test_each_remark_is_told_once_with_its_seeds() -> None:
    answer = processes.check(compared(("it was late",), (), ("it was late",)))
    assert answer.answer == Answer.TOLD and "seeds 0 and 2" in answer.text


def test_what_is_not_known_is_no_good_end() -> None:
    assert processes.check(compared(None, None)).answer == Answer.NOT_KNOWN
    assert processes.check(compared((), ())).answer == Answer.HOLDS
