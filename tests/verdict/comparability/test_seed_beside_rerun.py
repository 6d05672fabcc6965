"""Where seeds differ about as much as one seed from itself, there is no verdict; both numbers are named."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from plumbline.verdict.comparability import seed_beside_rerun
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.evidence import RunEvidence
from tests.verdict.comparability.arms import compare

SEEDS = (3.0, 3.01, 2.99, 3.008, 2.992)


@pytest.mark.parametrize(
    ("values", "again", "answer", "text"),
    [
        ((3.0, 3.01, 2.99), (), Answer.NOT_KNOWN, "run twice"),
        ((3.0, 3.01, 2.99), (3.0,), Answer.HOLDS, "seed 0 of start gave"),
        ((3.0, 3.01, 2.99), (3.0, 3.01), Answer.HOLDS, "0 and 1 of start gave"),
        (SEEDS, (3.0002,), Answer.HOLDS, "0.0002, and 5 seeds spread by 0.0091; 1.2"),
        (SEEDS, (3.004,), Answer.TOLD, "23 % of trainers whose seed"),
        (SEEDS, (3.001, 3.009, 2.991), Answer.HOLDS, "0.001, and 5 seeds spread by 0.0091"),
        (SEEDS, (3.006, 3.005, 2.995, 3.012), Answer.REFUSES, "seeds 0, 1, 2 and 3 of start"),
        (SEEDS, (3.02,), Answer.REFUSES, "0.02, and 5 seeds spread by 0.0091; 81"),
        ((3.0, 3.0 + 2e-8, 3.0 - 2e-8), (3.0 + 4e-8,), Answer.REFUSES, "4e-08, and 3 seeds spread by 2e-08"),
    ],
)
def test_the_spread_of_seeds_is_held_against_a_rerun(
    values: tuple[float, ...], again: tuple[float, ...], answer: Answer, text: str
) -> None:
    runs = [
        RunEvidence(value=value, seed=str(seed), rerun_value=rerun)
        for seed, (value, rerun) in enumerate(zip_longest(values, again))
    ]
    checked = seed_beside_rerun.check(compare(runs, [], labels={"base": "start"}))
    assert checked.answer == answer and text in checked.text, checked
