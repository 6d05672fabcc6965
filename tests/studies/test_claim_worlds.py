"""Every claim has a world in which it is false, and one in which its effect is reversed; or a reason why not.

The tests of each study run these worlds; `python -m tests.studies.claim_worlds` runs them all and prints the table.
"""

from __future__ import annotations

import pytest

from tests.studies.claim_worlds import STUDIES


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_claim_has_its_worlds_or_a_reason(name: str) -> None:
    found = STUDIES[name]()
    assert set(found.checks) == found.claims("false") | set(found.untestable)
    assert set(found.checks) == found.claims("reversed") | set(found.undirected) | set(found.untestable)
    assert not found.claims("reversed") & set(found.undirected)
    assert not (found.claims("false") | found.claims("reversed")) & set(found.untestable)
    assert all(len(why) > 5 for why in (*found.undirected.values(), *found.untestable.values()))


def test_a_claim_without_a_world_and_without_a_reason_is_found() -> None:
    found = STUDIES["quack"]()
    found.worlds[:] = [world for world in found.worlds if world.claim != "speed"]
    assert set(found.checks) - found.claims("false") == {"speed"}
