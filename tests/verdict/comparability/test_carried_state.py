"""A file counts as carried by who wrote it and when: not an older one, its own, or what none read."""

from __future__ import annotations

import pytest

from plumbline.verdict.comparability import carried_state
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.evidence import RunEvidence
from tests.verdict.comparability.arms import compare

#: When the baseline's run begins, which takes 10 seconds; the candidate's begins 20 seconds later.
BEGAN = 1_700_000_000.0


def run(seed: str, after: float, read: dict[str, float] | None, *written: str) -> RunEvidence:
    at = f"2023-11-14T22:13:{20 + after:02.0f}+00:00"
    files = {"read_outside": read, "written_outside": written}
    return RunEvidence(value=1.0, seed=seed, seconds=10.0, started=at, **files)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written_by_first", "read_by_second", "written_by_second", "answer"),
    [
        ((), {"/d/x": BEGAN - 5}, (), Answer.HOLDS),
        ((), {"/d/x": BEGAN + 5}, (), Answer.REFUSES),
        ((), {"/d/x": BEGAN + 15}, (), Answer.HOLDS),
        (("/d/x",), {"/d/x": BEGAN - 5}, (), Answer.REFUSES),
        (("/d/x",), {"/d/x": BEGAN + 25}, ("/d/x",), Answer.TOLD),
        (("/d/x",), {"/d/y": BEGAN - 5}, (), Answer.TOLD),
        ((), None, (), Answer.NOT_KNOWN),
    ],
    ids=["older data", "left", "between", "with an old time", "its own", "read by none", "no Python"],
)
def test_a_file_is_carried_that_another_run_left(
    written_by_first: tuple[str, ...],
    read_by_second: dict[str, float] | None,
    written_by_second: tuple[str, ...],
    answer: Answer,
) -> None:
    first, second = run("1", 0, {}, *written_by_first), run("2", 20, read_by_second, *written_by_second)
    checked = carried_state.check(compare([first], [second], labels={"new": "half"}))
    assert checked.answer == answer, checked
    if answer == Answer.REFUSES:
        assert "seed 2 of half read /d/x" in checked.text
