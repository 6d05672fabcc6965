"""How runs ended stands beside the verdict, each thing once with its seeds; what is not known is said."""

from __future__ import annotations

from plumbline.verdict.comparability import processes
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.evidence import RunEvidence
from tests.verdict.comparability.arms import compare


def answer(*remarks: tuple[str, ...] | None) -> CheckAnswer:
    runs = [RunEvidence(value=1.0, seed=str(seed), remarks=each) for seed, each in enumerate(remarks)]
    return processes.check(compare([RunEvidence(value=1.0, seed="9")], runs))


def test_each_remark_is_told_once_with_its_seeds() -> None:
    late = answer(("it was late",), (), ("it was late",))
    assert late.answer == Answer.TOLD and "seeds 0 and 2" in late.text


def test_what_is_not_known_is_no_good_end() -> None:
    assert answer(None, None).answer == Answer.NOT_KNOWN
    assert answer((), ()).answer == Answer.HOLDS
