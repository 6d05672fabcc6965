"""The recorded losses of every method."""

from __future__ import annotations

import pytest

from plumbline import NUMERICS
from tests.golden.runs import STEPS, TOLERANCE, losses, recorded
from tests.model.methods import METHODS


def test_recorded_under_this_numerics():
    assert recorded()["numerics"] == NUMERICS, "NUMERICS was bumped; record with `python -m tests.golden.make`"
    assert recorded()["losses"].keys() == METHODS.keys(), "a method came or went; run `python -m tests.golden.make`"


@pytest.mark.parametrize("method", METHODS)
def test_golden(method):
    expected, found = recorded()["losses"][method], losses(method)
    gaps = [abs(a - b) for a, b in zip(found, expected, strict=True)]
    first = next((step for step, gap in enumerate(gaps, start=1) if not gap <= TOLERANCE), None)
    assert first is None, (
        f"{method}: the loss at step {first} is {found[first - 1]}, recorded is {expected[first - 1]} (tolerance "
        f"{TOLERANCE}). If this change of the numerics is meant, bump NUMERICS in src/plumbline/__init__.py and record "
        "again with `python -m tests.golden.make`; otherwise find what changed"
    )


def test_the_losses_tell_methods_apart():
    """What the tolerance could not see would not be worth recording: only the same method twice may coincide."""
    kept = recorded()["losses"]
    assert all(len(values) == STEPS for values in kept.values())
    names = sorted(kept)
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            gap = max(abs(a - b) for a, b in zip(kept[one], kept[other], strict=True))
            same = {one, other} == {"baseline", "softmax_cap"}  # the cap is never reached
            assert (gap < TOLERANCE) if same else (gap > 2 * TOLERANCE), (one, other, gap)
