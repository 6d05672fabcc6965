"""A project that obstacles are made in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import snakemake.cli  # noqa: F401  (its plug-ins look at PATH when they are imported)

from plumbline.operate.preflight import hub


@pytest.fixture
def root(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that may be changed, and is worked in."""
    for name in ("config", "studies"):
        shutil.copytree(repository / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for variable in hub.OFFLINE:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def programs(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that is all of PATH."""
    (root / "bin").mkdir()
    monkeypatch.setenv("PATH", str(root / "bin"))
    return root / "bin"
