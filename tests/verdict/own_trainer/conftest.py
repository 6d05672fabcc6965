"""Runs start warm, but for those whose process itself is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests import warm_runs

#: Modules whose runs are real processes.
REAL = ("test_killed",)


@pytest.fixture(autouse=True, scope="module")
def warm(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if request.node.path.stem in REAL else warm_runs.start_warm():
        yield
