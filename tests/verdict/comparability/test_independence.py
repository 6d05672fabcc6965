"""Values that follow the order of their runs are told or refused; what has no order is not called independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plumbline.verdict.comparability import independence
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence

FALLING = [5.0, 4.0, 3.0, 2.0, 1.0]
STEADY = [3.0, 5.0, 1.0, 4.0, 2.0]


def compared(baseline: Sequence[float], own: Sequence[float], fresh: Sequence[float] = (), **more: Any) -> ComparedArms:
    values = [*(("baseline", each, False) for each in baseline), *(("new", each, False) for each in own)]
    values += [("new", each, True) for each in fresh]
    runs: dict[str, dict[str, RunEvidence]] = {"baseline": {}, "new": {}}
    for order, (arm, value, is_fresh) in enumerate(values):
        runs[arm][str(order)] = RunEvidence(value=value, order=order, fresh=is_fresh)
    return ComparedArms(evidence=Evidence(metric="loss", runs=runs), baseline="baseline", candidate="new", **more)


def test_values_that_fall_in_order_of_their_runs_are_refused() -> None:
    answer = independence.check(compared(FALLING, FALLING))
    assert answer.answer == Answer.REFUSES and "setup-trainer --again" in answer.text
    assert "better than earlier ones" in answer.text
    assert "are worse than" in independence.check(compared(FALLING, FALLING, higher=True)).text
    assert independence.check(compared(STEADY, STEADY)).answer == Answer.HOLDS
    assert independence.check(compared(STEADY, [value - 9 for value in STEADY])).answer == Answer.HOLDS, "a gain"


def test_a_trend_is_refused_by_what_the_session_has_left() -> None:
    late = compared(FALLING, [3.0, 2.0, 1.0, 4.0], tries=40)
    assert independence.check(late).answer == Answer.TOLD
    assert independence.check(compared(FALLING, FALLING, tries=200)).answer == Answer.TOLD


def test_fresh_runs_are_no_later_runs_of_those_that_looked_good() -> None:
    bank = [3.0, 1.0, 4.0, 2.0, 5.0]
    looked_good = compared(bank, [1.0, 1.1, 0.9], [3.1, 5.1, 4.1, 4.6, 4.9])
    assert independence.check(looked_good).answer == Answer.HOLDS
    merged = compared(bank, [1.0, 1.1, 0.9, 3.1, 5.1, 4.1, 4.6, 4.9])
    assert independence.check(merged).answer == Answer.TOLD


def test_one_late_run_of_baseline_far_from_others_is_told() -> None:
    arms = compared([3.0, 3.2, 2.9, 3.1, 3.05], [3.1, 2.9])
    arms.evidence.runs["baseline"]["30"] = RunEvidence(value=-10.0, order=30)
    answer = independence.check(arms)
    assert answer.answer == Answer.TOLD and "since the bank was" in answer.text
    assert answer.numbers["p"] > 0.05


@pytest.mark.parametrize("started", [None, "yesterday", "2026-01-01T00:00:0{}"])
def test_order_is_told_by_start_times_or_not_known(started: str | None) -> None:
    runs = {
        arm: {
            str(place): RunEvidence(value=value, started=started and started.format(place), line=place)
            for place, value in enumerate(FALLING)
        }
        for arm in ("baseline", "new")
    }
    arms = ComparedArms(evidence=Evidence(metric="loss", runs=runs), baseline="baseline", candidate="new")
    expected = Answer.REFUSES if started and started.startswith("2026") else Answer.NOT_KNOWN
    assert independence.check(arms).answer == expected


def test_runs_that_repeat_a_curve_are_one_run() -> None:
    curves = [{step: 1 / step + 0.01 * (seed * step % 7) for step in range(1, 10)} for seed in range(1, 5)]
    curves.append({step: value + 1e-6 for step, value in curves[1].items()})
    runs = {str(seed): RunEvidence(value=1.0, seed=str(seed), curve=each) for seed, each in enumerate(curves)}
    evidence = Evidence(metric="loss", runs={"baseline": {}, "new": runs})
    answer = independence.check(ComparedArms(evidence=evidence, baseline="baseline", candidate="new"))
    assert answer.answer == Answer.REFUSES and "1 of new and seed 4" in answer.text
