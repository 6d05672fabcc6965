"""A finished run with probe points of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model_specs import run_spec
from tests.train import small_runs


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``validation.json`` and the outputs of a run in ``out``."""
    work = tmp_path_factory.mktemp("probed")
    spec = run_spec(probes=small_runs.PROBES, model__query_key={"name": "qk_norm"})
    assert small_runs.train(spec, small_runs.settings(small_runs.make_packs(work), work)) == 0
    return work
