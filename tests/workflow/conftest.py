"""One project that several tests take through its life."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests.workflow.project_copy import Project

SMOKE = ("--config", "preset=smoke")

#: What needs no other runs than table 2.
PRODUCTS = ("table1", "table2", "table4", "table7", "noise_floor", "task_deltas", "fig2", "fig3")


def products() -> list[str]:
    """The targets of the project's life."""
    product_files = [f"results/smoke/transfer/{name}.{'png' if name.startswith('fig') else 'csv'}" for name in PRODUCTS]
    return [
        "results/table2.csv",
        *product_files,
        "results/smoke/transfer/interpretations.md",
        "results/smoke/audit.csv",
    ]


@pytest.fixture(scope="session")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A project whose table 2, and what else its runs give, was built at the smoke preset; nobody changes it.

    Of several workers one builds it (the other one waits: it has both processors).
    """
    shared = tmp_path_factory.getbasetemp().parent if worker_id != "master" else tmp_path_factory.getbasetemp()
    built = shared / "finished"
    with FileLock(shared / "finished.lock"):
        if not built.exists():
            project = Project.copy(repository, shared / "building")
            process = project.snakemake(*products(), *SMOKE)
            assert process.returncode == 0, process.stdout[-6000:]
            project.root.rename(built)
    return built


@pytest.fixture(scope="session")
def finished(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The finished project, in a copy whose life goes on from test to test."""
    own = tmp_path_factory.mktemp("life") / "project"
    shutil.copytree(built, own, symlinks=True)
    return Project(own)


@pytest.fixture(scope="module")
def finished_copy(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The finished project as it was built, in a copy that the tests of a file may change."""
    root = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(built, root, symlinks=True)
    yield Project(root)
    shutil.rmtree(root)
