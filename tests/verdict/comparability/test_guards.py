"""Guards hold or are broken by the runs of both arms, and what their noise does not tell from the limit is named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from plumbline.verdict.comparability import every_check, guards
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence
from tests.verdict.comparability.arms import compare

Amounts = Sequence[float | None]


def compared(limits: Mapping[str, str], theirs: Amounts, ours: Amounts) -> ComparedArms:
    """Arms whose runs state the one that is guarded, be it their memory or the metric `acc`."""
    base, new = (
        [RunEvidence(value=1.0, memory_bytes=each, others={} if each is None else {"acc": each}) for each in side]
        for side in (theirs, ours)
    )
    return compare(base, new, guards=limits)


MEMORY = {"memory_bytes": "<= 1.05x"}


def test_a_measure_is_held_to_times_the_baselines_median() -> None:
    broken = compared(MEMORY, [1e9, 1e9, 5e9], [1.4e9, 1.4e9])  # one wild run of the baseline moves no median
    assert "peak memory is 1.4 times" in guards.describe_broken(broken)
    steady = compared(MEMORY, [1e9] * 3, [1.4e9] * 2)
    answer = guards.check(steady)
    assert answer.answer == Answer.TOLD and answer.text.endswith("at most 1.05 times is allowed: broken")
    assert answer.numbers == {"memory_bytes": pytest.approx(1.4)}
    held = compared(MEMORY, [1e9] * 3, [1.05e9] * 2)
    assert guards.check(held).answer == Answer.HOLDS and not guards.describe_broken(held), "the limit itself is allowed"
    above = guards.describe_broken(compared(MEMORY, [1e9] * 3, [1.0504e9] * 2))
    assert "1.0504 times" in above, "no amount is printed as the limit that it breaks"


@pytest.mark.parametrize(("ours", "is_broken"), [([1.0, 1.03, 1.06], False), ([1.04, 1.07, 1.08], True)])
def test_what_noise_does_not_tell_from_the_limit_is_told_so(ours: list[float], is_broken: bool) -> None:
    arms = compared(MEMORY, [0.97, 1.0, 1.03], ours)
    answer = guards.check(arms)
    assert answer.answer == Answer.TOLD and "90 % interval" in answer.text
    assert answer.text.endswith("broken" if is_broken else "held") and bool(guards.describe_broken(arms)) == is_broken
    metric = guards.check(compared({"acc": ">= -0.02"}, [0.97, 1.0, 1.03], [0.98, 1.0, 1.02]))
    assert metric.answer == Answer.TOLD and "90 % interval -0.0444 to 0.0444): held" in metric.text
    alone = guards.check(compared(MEMORY, [1.0], [1.01]))
    assert alone.answer == Answer.TOLD and "run of each arm" in alone.text, "its noise is not known"


@pytest.mark.parametrize(
    ("limit", "gain", "facts"),
    [
        (">= -0.002", -0.01, "`acc` 0.01 lower 0.002"),
        (">= -0.002", -0.002, ""),
        (">= -0.002", 0.3, ""),
        ("<= 0.01", 0.02, "`acc` 0.02 higher 0.01"),
        ("<= 0.01", -0.3, ""),
        (">= 0", -0.001, "`acc` 0.001 lower no"),
        (">= 0.1", 0.01, "`acc` 0.01 higher 0.1 required"),
    ],
)
def test_a_metric_has_a_margin_in_its_units_to_either_side(limit: str, gain: float, facts: str) -> None:
    theirs = [0.5, 0.5001, 0.4999]
    arms = compared({"acc": limit}, theirs, [each + gain for each in theirs])
    reason = guards.describe_broken(arms).partition(" (not known")[0]
    assert bool(reason) == bool(facts) and re.search(" .*".join(map(re.escape, facts.split())), reason)


def test_what_a_run_does_not_state_cannot_be_judged() -> None:
    for limits, name in ((MEMORY, "peak memory"), ({"acc": ">= 0"}, "`acc`")):
        arms = compared(limits, [1.0, 1.0], [1.0, None])
        answer = guards.check(arms)
        assert answer.answer == Answer.REFUSES and answer.text.startswith(f"{name} is guarded")
        assert not guards.describe_broken(arms)
        assert every_check.examine(arms)["guards"] == answer
    lost = RunEvidence(value=None)
    assert not guards.explain_unstated(MEMORY, [lost]) and guards.explain_unstated(MEMORY, [RunEvidence(value=1.0)])
    assert "guards" not in every_check.examine(compared({}, [1.0] * 2, [1.0] * 2)), "only where there are some"
