"""A world in which the paper is right, built once."""

from __future__ import annotations

import pytest

from tests.studies.key_norms.synthetic_runs import World
from tests.studies.run_files import keep_read


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Runs at paper size that give what the paper prints. Read only."""
    return keep_read(World(tmp_path_factory.mktemp("right")))
