"""What a folder keeps: a baseline that stays, rows as autoresearch writes them, and on what a run was made."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from plumbline.core import locks
from plumbline.core.errors import PlumblineError
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.own_trainer import fingerprint
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.snapshot import Repository
from tests.verdict.own_trainer.trainers import TRAIN, git, make, trainer, write_toml


def test_the_baseline_stays_where_head_moves_and_is_held(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    own, repository = Folder(folder), Repository(folder)
    first = own.hold_baseline(repository)
    (folder / "train.py").write_text("# other\n")
    git(folder, "commit", "-q", "--amend", "-am", "rewritten")
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "gc", "-q", "--prune=now")
    assert own.hold_baseline(repository) == first
    own.move_baseline(repository, repository.candidate(["--lr", "3"], "kept"))
    assert own.hold_baseline(repository).flags == ("--lr", "3")
    assert git(folder, "rev-parse", "refs/plumbline/baseline") == git(folder, "rev-parse", "HEAD")


def test_rows_have_the_columns_of_autoresearch(tmp_path: Path) -> None:
    row = ["a1b2c3d", "0.9979", "44.0", "keep", "a\ttab and\na line", "3", "0.01"]
    Folder(tmp_path).append_row("val_bpb", row)
    text = (tmp_path / "results.tsv").read_text()
    assert text.splitlines() == [
        "commit\tval_bpb\tmemory_gb\tstatus\tdescription\tseeds\tp",
        "a1b2c3d\t0.9979\t44.0\tkeep\ta tab and a line\t3\t0.01",
    ]
    (tmp_path / "results.tsv").write_text("commit\tval_bpb\tmemory_gb\tstatus\tdescription\nx\t1\t1\tkeep\tbaseline")
    Folder(tmp_path).append_row("val_bpb", row)
    assert (tmp_path / "results.tsv").read_text().splitlines()[1:] == [
        "x\t1\t1\tkeep\tbaseline",
        "a1b2c3d\t0.9979\t44.0\tkeep\ta tab and a line",
    ]


def test_a_run_is_made_once(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    arms, own = trainer(folder, "--gain", "1"), Folder(folder)
    (arm_run,) = arms.run([(BASELINE, 1)])
    assert list(trainer(folder, "--gain", "1").run([(BASELINE, 1)])) == [arm_run]  # read, and not made again
    bank = own.bank()
    bank.append(arms.group, arms.method(BASELINE), arm_run)
    assert own.bank().find_run(arm_run.run_id) == arm_run
    text = bank.path.read_text()
    bank.path.write_text(text.replace('"schema":2', '"schema":3'))
    with pytest.raises(PlumblineError, match=r"runs\.jsonl.*later"):
        own.bank()
    (result,) = own.runs.glob("*.result.json")
    result.write_text(json.dumps(json.loads(result.read_text()) | {"schema": 2}))
    with pytest.raises(PlumblineError, match=r"result\.json.*later"):
        list(arms.run([(BASELINE, 1)]))


def test_a_run_says_on_what_it_was_made_and_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "mine")
    (folder / "train.py").write_text("import torch\n" + TRAIN)
    (folder / "torch.py").write_text("__version__ = '2.6.0'\n")
    (folder / "data").write_text("one")
    write_toml(folder, 'data = ["data"]')
    (tmp_path / "bin").mkdir()
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho '0, GPU-1, NVIDIA H100, 550.1'\necho '1, GPU-2, NVIDIA A100, 550.1'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    arms = trainer(folder)
    (first,) = arms.run([("candidate", 1)])
    facts = json.loads(next(Folder(folder).runs.glob("*.result.json")).read_text())["fingerprint"]
    assert facts["cpu"] and (facts["gpu"], facts["driver"], facts["torch"]) == ("1 x NVIDIA A100", "550.1", "2.6.0")
    (folder / "data").write_text("two")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (folder / "torch.py").write_text("__version__ = '2.7.0'\n")
    (second,) = trainer(folder).run([("candidate", 2)])
    assert first.fingerprint != second.fingerprint
    changes = arms.list_machine_changes([first, second])
    assert [line.partition(":")[0] for line in changes] == ["data", "gpu", "torch"]
    assert "torch: 2.6.0, 2.7.0" in changes


def test_large_data_is_known_by_its_begin_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_SAMPLE", 4)
    (tmp_path / "data").write_bytes(b"abcd....efgh")
    before = fingerprint.hash_data(tmp_path, ["data"])
    (tmp_path / "data").write_bytes(b"abcd....efgX")
    assert fingerprint.hash_data(tmp_path, ["data"]) != before != fingerprint.hash_data(tmp_path, ["gone"])
    os.mkfifo(tmp_path / "pipe")  # its reading would never end
    with pytest.raises(PlumblineError, match=r"run\.data:.*/pipe.*neither"):
        fingerprint.hash_data(tmp_path, ["pipe"])


def test_a_bank_of_an_older_plumbline_is_refused(tmp_path: Path) -> None:
    """Its lines were not bound to each other."""
    bank = tmp_path / "runs.jsonl"
    run = {"arm": "baseline", "seed": 42, "value": 0.98, "outcome": "finished", "run_id": "a1"}
    older = {"schema": 0, "group": "train.py", "method": "a1", "role": "loop", "at": "2026-01-01T00:00:00Z", "run": run}
    bank.write_text(json.dumps(older) + "\n")
    with pytest.raises(PlumblineError, match=r"earlier Plumbline.*mv runs\.jsonl runs\.jsonl\.old"):
        Bank(bank)


def test_a_value_that_was_edited_in_the_bank_is_noticed(tmp_path: Path) -> None:
    bank = tmp_path / "runs.jsonl"
    for seed in (42, 43):
        Bank(bank).append("train.py", "a1", ArmRun(arm=BASELINE, seed=seed, value=0.5 + seed))
    assert [run.value for run in Bank(bank).list_runs("train.py", "a1")] == [42.5, 43.5]
    bank.write_text(bank.read_text().replace("42.5", "42.25"))
    with pytest.raises(PlumblineError, match=r"runs\.jsonl, line 1"):
        Bank(bank)


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no run in progress, whose copy would be used as it lies there."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    folder = Folder(make(tmp_path / "mine"))
    folder.make()
    lock = folder.runs / "a.result.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    assert not folder.at_work("a")
    with locks.hold(lock, "waiting"):
        assert folder.at_work("a")
    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with pytest.raises(OSError, match="No locks"):
        folder.at_work("a")
    with pytest.raises(OSError, match="No locks"), locks.hold(lock, "waiting", must=True):
        pass
