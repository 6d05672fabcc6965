"""Packs that the tests of training share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model_specs import run_spec
from tests.train import small_runs
from tests.train.intervention_cases import ALWAYS, slow, spec
from tests.train.small_runs import settings, train


@pytest.fixture(scope="session")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with train.json and validation.json."""
    return small_runs.make_packs(tmp_path_factory.mktemp("packs"))


@pytest.fixture(scope="session")
def undisturbed(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run, trained without interruption."""
    work = tmp_path_factory.mktemp("undisturbed")
    assert small_runs.train(run_spec(), small_runs.settings(packs, work)) == 0
    return work


@pytest.fixture(scope="session")
def probed(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run with probe points, trained without interruption."""
    work = tmp_path_factory.mktemp("probed")
    assert small_runs.train(run_spec(probes=small_runs.PROBES), small_runs.settings(packs, work)) == 0
    return work


@pytest.fixture(scope="session")
def unslowed(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run without any intervention."""
    work = tmp_path_factory.mktemp("unslowed")
    assert train(spec(), settings(packs, work)) == 0
    return work


@pytest.fixture(scope="session")
def slowed(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Released after step 8, back at the full rate in step 14."""
    work = tmp_path_factory.mktemp("slowed")
    assert train(spec(slow(**ALWAYS)), settings(packs, work)) == 0
    return work
