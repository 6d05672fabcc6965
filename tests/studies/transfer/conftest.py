"""The published world, built once."""

from __future__ import annotations

import pytest

from tests.studies.transfer.synthetic_runs import World, published_once


@pytest.fixture(scope="session")
def published() -> World:
    """Runs that give the printed numbers. Read only."""
    return published_once()
