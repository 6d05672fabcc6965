"""What runs took is compared beyond its own noise: told next to the verdict, refused where it had to be equal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparability import equal_budget
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence, parse_measures
from tests.verdict.comparability.arms import compare


def compared(theirs: Sequence[dict[str, float]], ours: Sequence[dict[str, float]], *equal: str) -> ComparedArms:
    base, new = ([RunEvidence(value=1.0, **each) for each in side] for side in (theirs, ours))  # type: ignore[arg-type]
    return compare(base, new, equal=equal)


def test_four_times_steps_and_longer_runs_are_told() -> None:
    theirs = [{"seconds": seconds, "step": 1000.0} for seconds in (10.0, 10.4, 9.8)]
    ours = [{"seconds": seconds, "step": 4000.0} for seconds in (24.5, 24.0)]
    answer = equal_budget.check(compared(theirs, ours))
    assert answer.answer == Answer.TOLD and answer.numbers["step"] == 4
    assert answer.numbers["tokens"] is None, "what is not known is no number"
    assert answer.text == (
        "the runs of `new`, compared with those of `base`, took 2.4 times as long (24 s against 10 s) and made 4 times "
        "the steps (4,000 against 1,000)"
    )


def test_exact_measures_differ_by_anything() -> None:
    more = equal_budget.check(compared([{"parameters": 1e6}] * 3, [{"parameters": 1e6 + 100}] * 3))
    assert more.answer == Answer.TOLD and "0.01 % more parameters" in more.text
    noisy = [{"seconds": seconds} for seconds in (10.0, 14.0, 19.0)]
    wide = equal_budget.check(compared(noisy, [{"seconds": each["seconds"] * 1.3} for each in noisy]))
    assert wide.answer == Answer.HOLDS, "30 % within a spread of 40 %"
    steady = equal_budget.check(compared([{"seconds": 10.0}] * 5, [{"seconds": 10.1}] * 5))
    assert steady.answer == Answer.HOLDS, "1 % is not told, however small the noise"
    budget = [{"step": step} for step in (990.0, 1000.0, 1012.0)]
    assert equal_budget.check(compared(budget, budget[::-1])).answer == Answer.HOLDS, "a time budget's steps are noisy"


def test_one_run_of_each_arm_tells_no_noise() -> None:
    assert equal_budget.check(compared([{"seconds": 10.0}], [{"seconds": 14.0}])).answer == Answer.HOLDS
    assert equal_budget.check(compared([{"seconds": 10.0}], [{"seconds": 25.0}])).answer == Answer.TOLD


def test_what_has_to_be_equal_is_refused() -> None:
    arms = compared([{"seconds": 10.0, "step": 5.0}] * 3, [{"seconds": 30.0, "step": 5.0}] * 3, "seconds")
    answer = equal_budget.check(arms)
    assert answer.answer == Answer.REFUSES and "had to be equal" in answer.text and "3 times" in answer.text
    others = compared([{"seconds": 10.0, "step": 5.0}] * 3, [{"seconds": 30.0, "step": 5.0}] * 3, "step")
    assert equal_budget.check(others).answer == Answer.TOLD, "only what was named is refused"
    some = compared([{"tokens": 10.0}, {}], [{"tokens": 10.0}] * 2, "tokens")
    assert equal_budget.check(some).answer == Answer.REFUSES, "a run that does not state it could be any"


def test_nothing_known_is_not_known() -> None:
    answer = equal_budget.check(compared([{}, {}], [{}]))
    assert answer.answer == Answer.NOT_KNOWN and "peak memory" in answer.text
    runs = {"base": {"1": RunEvidence(value=1.0, seconds=10.0)}, "new": {"1": RunEvidence(value=None, seconds=99.0)}}
    lost = ComparedArms(evidence=Evidence(metric="loss", runs=runs), baseline="base", candidate="new")
    assert equal_budget.check(lost).answer == Answer.NOT_KNOWN


def test_an_unknown_measure_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlumblineError, match=r"decide.equal: 'second' is none of .*'seconds'"):
        parse_measures(["second"], "decide.equal")
