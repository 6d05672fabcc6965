"""The published world, built once, and runs whose specs are made up."""

from __future__ import annotations

import pytest

from tests.studies.transfer.conftest import published

__all__ = ["published"]


@pytest.fixture
def specs_of_other_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests whose specs were changed by a test are read as if their run ids were of them."""
    monkeypatch.setattr("plumbline.core.run_files.require_manifest", lambda path, manifest: None)
