"""Fixtures of the audit's tests."""

import shutil

import pytest


@pytest.fixture
def changed(repository, tmp_path):
    """A root whose printed numbers a test may change."""
    shutil.copytree(repository / "studies", tmp_path / "studies")
    (tmp_path / "config").mkdir()
    return tmp_path
