"""Configurations that plans are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.project import Project, load
from plumbline.specs.yaml_files import load_config

#: A user's own study in addition changes no number.
ALONE = {"studies": ["transfer"]}


@pytest.fixture
def paper(tmp_path: Path) -> Project:
    return load(load_config() | ALONE | {"preset": "paper", "work": str(tmp_path), "machine": "h100"})


@pytest.fixture
def demo(tmp_path: Path) -> Project:
    return load(load_config() | ALONE | {"preset": "demo", "work": str(tmp_path)})


@pytest.fixture
def every_paper(tmp_path: Path) -> Project:
    """All studies that come with the project."""
    names = ["transfer", "premature", "query_free", "quack", "key_norms"]
    options = {"studies": names, "preset": "paper", "work": str(tmp_path), "machine": "h100"}
    return load(load_config() | options)
