"""A world in which the summary is right, built once."""

from __future__ import annotations

import pytest

from tests.studies.kept import kept
from tests.studies.quack import world
from tests.studies.quack.world import Written


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Runs at paper size that end as the summary says. Read only."""
    return kept(Written(tmp_path_factory.mktemp("right"), world.right()))


@pytest.fixture(scope="session")
def timed(right: Written, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The same with step times: QuacK takes 0.9 of QK norm's."""
    root = tmp_path_factory.mktemp("timed")
    return right.changed(lambda facts: facts, root).measured("step_time", world.times(qk_norm=1.0, quack=0.9))
