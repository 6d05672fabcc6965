"""A world in which the summary is right, built once."""

from __future__ import annotations

import pytest

from tests.studies.quack import synthetic_runs
from tests.studies.quack.synthetic_runs import Written
from tests.studies.run_files import keep_read


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Runs at paper size that end as the summary states. Read only."""
    return keep_read(Written(tmp_path_factory.mktemp("right"), synthetic_runs.right()))


@pytest.fixture(scope="session")
def timed(right: Written, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The same with step times: QuacK takes 0.9 of QK norm's."""
    root = tmp_path_factory.mktemp("timed")
    return right.changed(lambda facts: facts, root).measured("step_time", synthetic_runs.times(qk_norm=1.0, quack=0.9))
