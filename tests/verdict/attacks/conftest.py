"""What is remembered of the tests' folders is the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import warm_runs
from tests.verdict.attacks.attacked_folder import set_up


@pytest.fixture(scope="module")
def set_up_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is set up, one a file of tests, whose runs start warm."""
    with pytest.MonkeyPatch.context() as patch, warm_runs.start_warm():
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield set_up(tmp_path_factory.mktemp("attacked") / "own")
