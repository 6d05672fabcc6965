"""Every door gives what it gave: sentences, exit codes, JSON, pages. The package states how to change them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import warm_runs
from tests.kept_verdicts.carry_out import carry_out
from tests.kept_verdicts.inputs import INPUTS
from tests.kept_verdicts.write import EXPECTED, difference


@pytest.fixture(autouse=True, scope="module")
def warm() -> Iterator[None]:
    with warm_runs.start_warm():
        yield


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_gives_what_it_gave(name: str) -> None:
    expected, now = (EXPECTED / f"{name}.txt").read_text(encoding="utf-8"), carry_out(INPUTS[name])
    if now != expected:  # pytest's own comparison of long texts takes minutes
        again = f"if that is meant: python -m tests.kept_verdicts.write {name}"
        pytest.fail(f"{difference(name, expected, now)}\n\n{again}", pytrace=False)


def test_each_expectation_is_of_an_input() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == set(INPUTS)
