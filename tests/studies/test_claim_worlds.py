"""Every claim has a world in which it is false, and one in which its effect is reversed; or a reason why not.

The tests of each study run these worlds; `python -m tests.studies.claim_worlds` runs them all and prints the table.
"""

from __future__ import annotations

import pytest

from tests.studies.claim_worlds import STUDIES


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_claim_has_its_worlds_or_a_reason(name: str) -> None:
    worlds = STUDIES[name]()
    assert set(worlds.checks) == worlds.claims("false") | set(worlds.untestable)
    assert set(worlds.checks) == worlds.claims("reversed") | set(worlds.undirected) | set(worlds.untestable)
    assert not worlds.claims("reversed") & set(worlds.undirected)
    assert not (worlds.claims("false") | worlds.claims("reversed")) & set(worlds.untestable)
    assert all(len(why) > 5 for why in (*worlds.undirected.values(), *worlds.untestable.values()))


def test_a_claim_without_a_world_and_without_a_reason_is_found() -> None:
    worlds = STUDIES["quack"]()
    worlds.worlds[:] = [world for world in worlds.worlds if world.claim != "speed"]
    assert set(worlds.checks) - worlds.claims("false") == {"speed"}
