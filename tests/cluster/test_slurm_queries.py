"""plumbline.operate without a cluster: what is requested of SLURM, and what is read from its answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.locks import orphan_jobs
from plumbline.operate.preflight import cluster
from tests.forget_caches import forget
from tests.operate.preflight.made_up_plans import program

MINE = Path("/scratch/plumbline")
QUEUE = """\
71|RUNNING|plumbline_6f0c|rule_pretrain_wildcards_transfer_base_baseline_42|/scratch/plumbline
72|PENDING|plumbline_6f0c|rule_pretrain_wildcards_transfer_base_softpick_42|/scratch/plumbline
73|RUNNING|plumbline_11aa|rule_pretrain_wildcards_transfer_base_baseline_42|/scratch/another
74|RUNNING|interactive||/scratch/plumbline
"""


@pytest.fixture(autouse=True)
def another_process() -> Iterator[None]:
    forget(orphan_jobs)
    yield
    forget(orphan_jobs)


def test_orphans_are_jobs_of_this_directory_and_of_this_profile() -> None:
    jobs = orphan_jobs.parse(QUEUE, MINE)
    assert [job.id for job in jobs] == ["71", "72"]
    assert jobs[1].state == "PENDING"


def test_other_jobs_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment of two lines, or of another encoding, stopped every training that was to be submitted."""
    folder = os.fsdecode(b"/scratch/lat\xe9n|a b")
    listing = b"7|PENDING|a\nb|two\nlines|/x\n8|RUNNING|plumbline_a|b\nc|(null)|/x\n9|PENDING|-x|lat\xe9n|/x\n"
    listing += b"71|RUNNING|plumbline_6f0c|rule_audit|" + os.fsencode(folder) + b"\n"
    (tmp_path / "listing").write_bytes(listing)
    program(tmp_path, "squeue", f"exec /bin/cat {tmp_path}/listing")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [job.id for job in orphan_jobs.list_queue(Path(folder))] == ["71"]
    assert orphan_jobs.list_queue(Path("/x")) == []


def test_a_job_waits_for_its_predecessor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(orphan_jobs.shutil, "which", lambda name: f"/usr/bin/{name}")
    asked_folders: list[Path] = []
    monkeypatch.setattr(
        orphan_jobs, "list_queue", lambda here: asked_folders.append(here) or orphan_jobs.parse(QUEUE, MINE)
    )
    assert orphan_jobs.after("pretrain", ["transfer", "base", "baseline", 42]) == " --dependency=afterany:71"
    assert orphan_jobs.after("pretrain", ["transfer", "base", "baseline", 43]) == ""
    assert orphan_jobs.after("evaluate", ["transfer", "base", "baseline", 42]) == ""
    monkeypatch.setenv("SLURM_JOB_ID", "75")  # a job evaluates its resources again, and must not ask
    assert orphan_jobs.after("pretrain", ["transfer", "base", "baseline", 42]) == ""
    assert asked_folders == [Path.cwd()], "once: what this Snakemake submits itself is no orphan"


def test_dry_run_on_a_laptop_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(orphan_jobs.shutil, "which", lambda name: None)
    assert orphan_jobs.after("pretrain", ["transfer", "base", "baseline", 42]) == ""


def test_a_silent_queue_is_a_warning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def silent(directory: Path) -> list[orphan_jobs.SlurmJob]:
        raise PlumblineError("squeue failed: no controller")

    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(orphan_jobs.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(orphan_jobs, "list_queue", silent)
    assert orphan_jobs.after("pretrain", ["transfer", "base", "baseline", 42]) == ""
    assert "no controller" in capsys.readouterr().err


def test_settings_of_a_site_that_forgets_its_jobs() -> None:
    forgetful = "AccountingStoreFlags    = (null)\nMinJobAge               = 60 sec\n"
    age, comment = cluster.list_trouble(forgetful)
    assert "MinJobAge is 60 s" in age and "job_comment" in comment
    assert cluster.list_trouble("AccountingStoreFlags    = job_comment\nMinJobAge               = 300 sec\n") == []
