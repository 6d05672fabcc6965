"""Every claim has a world in which it is false, and one in which its effect is reversed; or a reason why not.

The tests of each study run these worlds; `python -m tests.studies.claim_worlds` runs them all and prints the table.
"""

from __future__ import annotations

import pytest

from tests.studies.claim_worlds import STUDIES

#: Study -> claims, with a false world, with a reversed one, without a direction, untestable.
COUNTS: dict[str, tuple[int, ...]] = {
    "transfer": (135, 126, 76, 50, 9),
    "premature": (96, 96, 65, 31, 0),
    "query_free": (47, 45, 17, 28, 2),
    "quack": (21, 21, 11, 10, 0),
    "key_norms": (27, 27, 11, 16, 0),
}


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_claim_has_its_worlds_or_a_reason(name: str) -> None:
    worlds = STUDIES[name]()
    assert set(worlds.checks) == worlds.claims("false") | set(worlds.untestable)
    assert set(worlds.checks) == worlds.claims("reversed") | set(worlds.undirected) | set(worlds.untestable)
    assert not worlds.claims("reversed") & set(worlds.undirected)
    assert not (worlds.claims("false") | worlds.claims("reversed")) & set(worlds.untestable)
    assert all(len(why) > 5 for why in (*worlds.undirected.values(), *worlds.untestable.values()))


@pytest.mark.parametrize("name", list(STUDIES))
def test_the_table_has_the_counts_of_the_worlds(name: str) -> None:
    """A claim does not lose its reversed world for a reason unnoticed."""
    assert tuple(STUDIES[name]().row().values()) == COUNTS[name]


def test_a_claim_without_a_world_and_without_a_reason_is_found() -> None:
    worlds = STUDIES["quack"]()
    worlds.worlds[:] = [world for world in worlds.worlds if world.claim != "speed"]
    assert set(worlds.checks) - worlds.claims("false") == {"speed"}
