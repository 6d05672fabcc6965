"""Folders of other users: named with owner and mode before anything is made, and what would not be shared."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.preflight import sharing
from plumbline.specs import yaml_files


def close_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder be as one of another user's is; root may do anything."""
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != folder)


@pytest.fixture
def masked() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_what_a_job_may_not_write_is_refused_with_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    work.chmod(0o2750)
    jobs = [SimpleNamespace(output=[work / "demo/a/b.json"], log=[tmp_path / "logs/a.log"])]
    assert sharing.list_refusals(jobs) == []
    close_folder(work, monkeypatch)
    (text,) = sharing.list_refusals(jobs)
    assert text.startswith(f"{work} cannot be read ") and "mode rwxr-s---. Let its owner share" in text
    with pytest.raises(PlumblineError, match=r"work: \S*/work/demo.*changed.*: \S*/work belongs"):
        yaml_files.require_work({"work": str(work), "preset": "demo"}, tmp_path)


def test_snakemakes_own_notes_are_looked_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.require_writable_notes(tmp_path)
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    sharing.require_writable_notes(tmp_path)
    close_folder(tmp_path / ".snakemake/locks", monkeypatch)
    with pytest.raises(PlumblineError, match=r"\.snakemake/locks cannot be read"):
        sharing.require_writable_notes(tmp_path)


@pytest.mark.usefixtures("masked")
def test_umask_that_keeps_group_out_of_shared_folder_is_said(tmp_path: Path) -> None:
    jobs = [SimpleNamespace(output=["a"], log=[])]
    for mode, shared in ((0o755, False), (0o775, False), (0o2755, False), (0o2775, True)):
        tmp_path.chmod(mode)
        assert bool(sharing.warn_of_withheld(str(tmp_path / "work"), jobs)) == shared
    assert "your umask 022 keeps" in sharing.warn_of_withheld(str(tmp_path), jobs)[0]
    assert sharing.warn_of_withheld(str(tmp_path), []) == []
    os.umask(0o002)
    assert sharing.warn_of_withheld(str(tmp_path), jobs) == []
