"""The published world, built once."""

from __future__ import annotations

import pytest

from tests.tables.world import World, published_world


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> World:
    """Runs that give the printed numbers. Read only."""
    return published_world(tmp_path_factory.mktemp("published"))
