"""A folder with a trainer of milliseconds that is set up: made once a file, and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.operate.experiments import setup_trainer
from tests import run_in_process, warm_runs
from tests.operate.experiments.trainer_folder import TRAINER, Done, plumbline, repository_of


@pytest.fixture(autouse=True, scope="package")
def warm() -> Iterator[None]:
    """Runs of this process start warm; those of a command line of its own are real."""
    with warm_runs.start_warm():
        yield


@pytest.fixture(autouse=True)
def agreed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    folder = repository_of(tmp_path_factory.mktemp("trainer") / "there", TRAINER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        return folder, run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)


@pytest.fixture
def folder(template: tuple[Path, Done], tmp_path: Path) -> Path:
    """A folder that is set up, of the test's own."""
    copy = shutil.copytree(template[0], tmp_path / "own")
    assert plumbline(copy, "try", "-n", "-m", "x", "--trust", "--", "--worse", "1").returncode == 0
    return copy
