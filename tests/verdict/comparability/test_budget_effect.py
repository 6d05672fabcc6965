"""Whether runs that were given more did more."""

from __future__ import annotations

import pytest

from plumbline.verdict.comparability.budget_effect import check
from plumbline.verdict.evidence import RunEvidence


@pytest.mark.parametrize(
    ("measure", "small", "large", "answer", "text"),
    [
        ("step", 1000, 4000, "holds", "1,000 at 1x and 4,000 at 4x"),
        ("step", 1000, 1000, "refuses", "budget has no effect"),
        ("step", 1000, 2000, "told", "2 times for 4"),
        ("tokens", 1e6, 1e6, "refuses", "budget has no effect"),
        ("seconds", 10.0, 35.0, "holds", "3.5 times as long"),
        ("seconds", 10.0, 11.0, "told", "1.1 times as long"),
    ],
)
def test_answers(measure: str, small: float, large: float, answer: str, text: str) -> None:
    runs = {
        times: [RunEvidence(value=1.0, **{measure: amount})] * 2  # type: ignore[arg-type]
        for times, amount in ((1.0, small), (4.0, large))
    }
    checked = check(runs, ("1x", "4x"))
    assert checked.answer == answer and text in checked.text


def test_what_no_run_states_is_not_known() -> None:
    assert (
        check({1.0: [RunEvidence(value=1.0)], 2.0: [RunEvidence(value=1.0)]}, ("1x", "2x")).answer == "not known here"
    )
