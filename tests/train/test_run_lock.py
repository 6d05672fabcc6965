"""One trainer at a time: waiting, stale locks, and noticing that a lock was lost."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from plumbline.core import locks, process_record
from plumbline.core.stop_request import StopRequest, StopRequested
from plumbline.train.checkpoint import run_lock, state_records
from plumbline.train.checkpoint.run_lock import RunLock, RunLockError


def take(directory: Path, **overrides: Any) -> RunLock:
    return RunLock(directory, **({"limit": 60.0, "wait": 0.0} | overrides))


def holder(directory: Path, **overrides: Any) -> Path:
    """A lock as a trainer that is not this process left it."""
    path = directory / run_lock.NAME
    content = process_record.identity() | {"token": "other", "since": time.time(), "slurm_job_id": "4711"} | overrides
    path.write_text(json.dumps(content))
    return path


def test_a_second_trainer_waits_and_then_names_the_holder(tmp_path: Path) -> None:
    with take(tmp_path):
        before = time.monotonic()
        with pytest.raises(RunLockError, match=rf"held by process {os.getpid()} on .*waited 0.3 s.*Two trainers"):
            take(tmp_path, wait=0.3).acquire()
        assert time.monotonic() - before >= 0.3
    with take(tmp_path):
        pass
    assert not (tmp_path / run_lock.NAME).exists()


def test_a_waiting_trainer_takes_over_a_released_lock(tmp_path: Path) -> None:
    first, second = take(tmp_path), take(tmp_path, wait=20.0)
    first.acquire()

    class GivesBack(StopRequest):
        def poll(self) -> None:
            first.release()

    second.stop = GivesBack()
    second.acquire()
    second.check()
    second.release()


def test_a_waiting_trainer_can_be_stopped(tmp_path: Path) -> None:
    with take(tmp_path):
        waiting = take(tmp_path, wait=60.0)
        waiting.stop.requested = True
        with pytest.raises(StopRequested):
            waiting.acquire()


@pytest.mark.parametrize(
    "gone",
    [{"pid": 2**22 + 1, "process_started": "1"}, {"process_started": "1"}],
    ids=["no such process", "its number belongs to another process now"],
)
def test_a_dead_holder_on_this_machine_is_replaced_at_once(tmp_path: Path, gone: dict[str, Any], capfd) -> None:
    holder(tmp_path, **gone)
    with take(tmp_path) as lock:
        lock.check()
    assert "took over" in capfd.readouterr().err


def test_a_live_holder_that_the_kernel_hides_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /proc is mounted with hidepid, another user's process shows in that it may not be signalled alone."""

    def another_users(pid: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    holder(tmp_path, pid=2**22 + 1, process_started="1")  # which is nowhere in /proc
    monkeypatch.setattr(os, "kill", another_users)
    with pytest.raises(RunLockError, match="held by process 4194305"):
        take(tmp_path).acquire()


def test_holder_elsewhere_is_dead_only_when_its_heartbeat_is_old(tmp_path: Path) -> None:
    path = holder(tmp_path, machine="node17/other-boot", host="node17", pid=2**22 + 1)
    with pytest.raises(RunLockError, match="on node17, SLURM job 4711"):
        take(tmp_path).acquire()
    os.utime(path, (time.time() - 61, time.time() - 61))
    with take(tmp_path) as lock:
        lock.check()


@pytest.mark.parametrize(
    "content, fault",
    [
        ("{", "is not JSON"),
        ("[]", "holds one list instead of a record"),
        ("3", "holds one int instead of a record"),
        ('{"host": "a", "machine": "b"}', "says no pid"),
        ('{"host": "a", "machine": "b", "pid": true}', "has a pid of True"),
        ('{"host": "a", "machine": "b", "pid": 1, "since": NaN}', "holds NaN, which is no number"),
        ('{"host": "a", "machine": "b", "pid": 1, "since": 1e99}', "has a since of 1e+99"),
        (None, "is a folder"),
    ],
)
def test_a_broken_lock_is_respected_until_old(tmp_path: Path, content: str | None, fault: str, capfd) -> None:
    path = tmp_path / run_lock.NAME
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises(RunLockError, match=re.escape(f"unknown trainer ({path} {fault}; delete")):
        take(tmp_path).acquire()
    os.utime(path, (1, 1))
    with take(tmp_path) as lock:
        lock.check()
    assert f"{tmp_path} from an unknown trainer ({path} {fault}" in capfd.readouterr().err
    assert path.with_name(f"{run_lock.NAME}.damaged").exists(), "kept to be looked at"


def test_a_lock_stamped_in_the_future_is_named(tmp_path: Path, capfd) -> None:
    """The clock was set back by an hour since its holder's last heartbeat, on another machine."""
    path = holder(tmp_path, machine="node17/other-boot", host="node17", pid=2**22 + 1)
    os.utime(path, (time.time() + 3600, time.time() + 3600))
    assert not state_records.is_alive(tmp_path, state_records.read_holder(tmp_path) or {}), (
        "plumbline status says that it is stale"
    )
    message = rf"{path} is stamped \d.* and here it is \d.* a clock was set back since.* delete {path}.* takes it over"
    with pytest.raises(RunLockError, match=message):
        take(tmp_path).acquire()
    began = time.monotonic()
    with take(tmp_path, limit=0.4, wait=30.0) as lock:
        lock.check()
        assert time.monotonic() - began >= 0.4
    assert re.search(message, capfd.readouterr().err)


def test_holder_whose_clock_is_ahead_is_alive(tmp_path: Path) -> None:
    path = holder(tmp_path, machine="node17/other-boot", host="node17", pid=2**22 + 1)

    class Beats(StopRequest):
        def poll(self) -> None:
            os.utime(path, (time.time() + 3600, time.time() + 3600))

    with pytest.raises(RunLockError, match="held by process 4194305 on node17"):
        take(tmp_path, limit=0.3, wait=1.0, stop=Beats()).acquire()


def test_the_heartbeat_keeps_a_lock_young(tmp_path: Path) -> None:
    with take(tmp_path, limit=0.4):
        path = tmp_path / run_lock.NAME
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 2


def test_a_suspended_holder_loses_its_lock_and_notices(tmp_path: Path) -> None:
    suspended = take(tmp_path, limit=1e6)  # its next heartbeat is days away
    suspended.acquire()
    os.utime(tmp_path / run_lock.NAME, (1, 1))
    with take(tmp_path) as lock:
        lock.check()
        with pytest.raises(RunLockError, match=r"process.*nothing"):
            suspended.check()
        suspended.release()
        lock.check()  # giving back a lost lock does not touch the new one


def test_a_fresh_lock_judged_by_an_older_ones_age_is_put_back(tmp_path: Path) -> None:
    fresh = holder(tmp_path, token="fresh")
    assert not process_record.remove(fresh, {"token": "old"})
    assert process_record.read(fresh)["token"] == "fresh"  # type: ignore[index]
    assert [path.name for path in tmp_path.iterdir()] == [run_lock.NAME]


def test_without_locks_the_lock_file_alone_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_unsupported(*arguments: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(locks.fcntl, "flock", raise_unsupported)
    with take(tmp_path), pytest.raises(RunLockError, match="held by"):
        take(tmp_path).acquire()
    with take(tmp_path):
        pass


def test_a_trainer_that_lost_its_lock_writes_nothing(packs: Path, tmp_path: Path) -> None:
    from plumbline.train import loop as loop_module
    from tests.model_specs import run_spec
    from tests.train import small_runs

    original = loop_module.TrainingLoop.train_step

    def lose(self: loop_module.TrainingLoop) -> Any:
        holder(tmp_path / "state", token="thief")
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", lose)
        with pytest.raises(RunLockError, match=r"was taken over"):
            small_runs.train(run_spec(), small_runs.settings(packs, tmp_path, checkpoint_steps=1))
    assert not list((tmp_path / "state").glob("*step-*")) and not (tmp_path / "out").exists()
    assert process_record.read(tmp_path / "state" / run_lock.NAME)["token"] == "thief"  # type: ignore[index]
