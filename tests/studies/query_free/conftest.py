"""A world in which the paper is right, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studies.query_free.synthetic_runs import Transfer, as_the_document_says, write_runs, write_transfer


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs at paper size, and the measurement, that give what the paper prints. Read only."""
    return write_transfer(Transfer(), write_runs(as_the_document_says(), tmp_path_factory.mktemp("right")))
