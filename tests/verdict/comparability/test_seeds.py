"""Runs of different seeds that are one run are refused; values that few digits make equal are not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import zip_longest

import pytest

from plumbline.verdict.comparability import seeds
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import Evidence, RunEvidence
from tests.verdict.comparability.arms import compare

BASE = (3.281237, 3.279914, 3.284402)


def answer(
    ours: Sequence[float],
    theirs: Sequence[float] = BASE,
    first: Sequence[tuple[str, ...]] = (),
    seed: str | None = None,
) -> CheckAnswer:
    base = [RunEvidence(value=value) for value in theirs]
    new = [RunEvidence(value=value, printed_first=lines, seed=seed) for value, lines in zip_longest(ours, first)]
    return seeds.check(compare(base, new))


def test_equal_values_of_many_digits_are_one_run() -> None:
    same = answer([3.271111, 3.271111, 3.274402])
    assert same.answer == Answer.REFUSES
    assert "0 and 1 of `new` all gave 3.271111" in same.text
    assert answer([3.271111, 3.271112, 3.274402]).answer == Answer.HOLDS


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([55.2, 55.2, 55.1], [54.9, 55.0, 55.3]),
        ([154 / 300, 154 / 300, 160 / 300], [150 / 300, 158 / 300, 149 / 300]),
        ([1.0, 1.0, 1.0, 1.0], [0.9987, 0.9992, 1.0, 0.9981]),
        ([0.5, 0.6] * 1000, [0.6, 0.5] * 1000),
    ],
    ids=["one decimal", "shares of 300 items", "the end of a scale", "many runs of ten items"],
)
def test_values_that_chance_makes_equal_hold(ours: list[float], theirs: list[float]) -> None:
    assert answer(ours, theirs).answer == Answer.HOLDS


@pytest.mark.parametrize(("sigma", "decimals", "sizes"), [(0.002, 4, (8, 5)), (0.01, 2, (20, 20))])
def test_honest_runs_are_seldom_refused(sigma: float, decimals: int, sizes: tuple[int, int]) -> None:
    draw = random.Random(2)
    sides = ([[round(draw.gauss(3.28, sigma), decimals) for _ in range(size)] for size in sizes] for _ in range(1000))
    assert sum(answer(*side).answer == Answer.REFUSES for side in sides) <= 5


def test_equal_first_values_are_one_run() -> None:
    first = ("10.8251", "9.1182", "8.2034", "7.4411", "7.0215")
    same = answer([3.2711, 3.2712], first=[first, first])
    assert same.answer == Answer.REFUSES and "values, 10.8251, 9.1182" in same.text
    other = ("10.8251", "9.1183", "8.2034", "7.4411", "7.0215")
    assert answer([3.2711, 3.2712], first=[first, other]).answer == Answer.HOLDS, "a zero-initialised head begins alike"
    assert answer([3.2711, 3.2712], first=[("10.8251",)] * 2).answer == Answer.HOLDS, "one value may be of no seed"
    assert answer([3.2711, 3.2712], first=[first, first], seed="7").answer == Answer.HOLDS, "one seed repeats itself"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([3.271111, 3.271112, 3.271114], BASE, Answer.TOLD),
        ([3.271111, 3.271112], [3.281111, 3.281114], Answer.TOLD),
        ([3.271111, 3.271112], BASE, Answer.HOLDS),  # two runs may be near by chance
        ([3.2711, 3.2718, 3.2713], BASE, Answer.HOLDS),
        ([0.0, 1e-9, 2e-9], [1e-9, 3e-9, 0.0], Answer.HOLDS),  # small, and no rounding of what they are
    ],
)
def test_values_that_rounding_alone_may_part_show_no_effect(ours, theirs, expected: Answer) -> None:
    checked = answer(ours, theirs)
    assert checked.answer == expected, checked
    assert expected == Answer.HOLDS or "sums in another order" in checked.text


def test_a_rerun_says_more_than_how_small_a_spread_is() -> None:
    runs = {str(place): RunEvidence(value=3 + place * 1e-7, rerun_value=3 + place * 1e-7) for place in range(4)}
    arms = ComparedArms(evidence=Evidence(metric="loss", runs={"base": runs}), baseline="base", candidate="base")
    assert seeds.check(arms).answer == Answer.HOLDS


def test_one_run_of_each_tells_nothing_of_its_seed() -> None:
    assert answer([3.2], [3.1]).answer == Answer.NOT_KNOWN
