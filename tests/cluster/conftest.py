"""The cluster's fixtures: up once a session, down at its end, skipped with a reason where it cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for the modules here, which `faults` uses as well


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A running cluster. A cluster that was up before stays up.

    PLUMBLINE_REQUIRE_CLUSTER=1 makes an error of what is otherwise a reason to skip, and lets Debian's packages be
    installed: nobody who just runs the tests finds a SLURM on their machine afterwards.
    """
    import snakemake_on_cluster as throwaway

    required = os.environ.get("PLUMBLINE_REQUIRE_CLUSTER") == "1"
    if not required and shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip("no cluster: SLURM is not installed (PLUMBLINE_REQUIRE_CLUSTER=1 installs it)")

    was_up = (throwaway.RUN / "pid" / "slurmctld.pid").exists()
    try:
        throwaway.up()
    except (RuntimeError, OSError) as problem:
        if required:
            raise
        pytest.skip(f"no cluster: {str(problem).strip().splitlines()[0]}")
    yield
    if not was_up:
        subprocess.run([HERE / "down"], check=True, capture_output=True)
