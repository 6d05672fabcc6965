"""Lets only one trainer at a time work at a run, by a lock in the state directory.

The lock is a file made with O_EXCL that names its holder; a thread refreshes its modification time. Beside it an
flock, where the file system has locks, settles races on one machine at once. A lock is stale, and is taken over,

- when its holder ran on this very machine and that process is gone (compared by process id and start time), or
- when its heartbeat is older than `limit` seconds, by the clock of the file system that holds it, or
- when its heartbeat lies in the future (a clock was set back since) and no other came while we waited for `limit`
  seconds.

A holder that lost its lock (it was suspended, or cut off from the file system) notices before it writes the next
checkpoint, and before each of its outputs: `check` raises, and the trainer stops.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from plumbline.core import locks, process_record
from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder
from plumbline.core.stop_request import StopRequest
from plumbline.train.disk_faults import explain_read_errors

NAME = "run_lock.json"
LOCK = "run_lock.flock"
#: Heartbeats in the time after which a silent holder is taken for dead.
_BEATS = 8


class RunLockError(PlumblineError):
    """Raised where another trainer has the run."""


class RunLock:
    """A trainer's lock on a run, held from `acquire` to `release`; use it as a context manager."""

    def __init__(self, directory: Path, *, limit: float, wait: float, stop: StopRequest | None = None) -> None:
        """`limit`: seconds after which a silent holder is taken for dead; `wait`: how long to wait for a live one."""
        self.directory, self.limit, self.wait = directory, limit, wait
        self.path = directory / NAME
        self.stop = stop or StopRequest()
        self.token = uuid.uuid4().hex
        self._lock: int | None = None
        self._future: tuple[float, float] | None = None  # a heartbeat in the future, and when it was first seen
        self._finished = threading.Event()
        self._heartbeat = threading.Thread(target=self._refresh, name="run lock heartbeat", daemon=True)

    def __enter__(self) -> RunLock:
        try:
            self.acquire()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(self, *reason: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock, and wait while another living trainer holds it.

        Raises:
            RunLockError: another trainer still holds it after `wait` seconds.
            PermissionError: this user may not read who holds it.
            StopRequested: asked to stop while waiting.
        """
        make_folder(self.directory)
        deadline, announced = time.monotonic() + self.wait, False
        while not (self._lock_file() and self._create()):
            self._require_permission()
            holder, clock_message = describe_owner(self.path), self._describe_clock_change()
            if time.monotonic() >= deadline:
                raise RunLockError(
                    f"{self.directory} is held by {holder}; waited {self.wait:g} s. "
                    + (
                        clock_message
                        or "Two trainers may not train one run: stop the other one, or wait until it ends (it is "
                        f"taken for dead {self.limit:g} s after its last heartbeat)"
                    )
                )
            if not announced:
                print(f"waiting up to {self.wait:g} s for {self.directory}, held by {holder}", file=sys.stderr)
                if clock_message:
                    print(clock_message, file=sys.stderr)
                announced = True
            self.stop.poll()
            time.sleep(min(0.2, self.limit / 10))
        self._heartbeat.start()

    def check(self) -> None:
        """Make sure, before anything is written, that the lock is still this trainer's.

        Raises:
            RunLockError: it was taken over.
            UnreadableFile: the file system does not say.
        """
        for _ in range(5):
            holder = process_record.read(self.path)
            if holder and holder.get("token") == self.token:
                return
            if holder:
                break
            time.sleep(0.1)  # a take-over that was aimed at another lock puts ours back
        if holder is not None:
            with explain_read_errors(self.directory), contextlib.suppress(FileNotFoundError, IsADirectoryError):
                self.path.read_bytes()
        raise RunLockError(
            f"{self.directory} was taken over by {describe_owner(self.path)} while this trainer was silent; "
            f"nothing more is written here"
        )

    def release(self) -> None:
        """Give the lock back, if it is still this trainer's."""
        self._finished.set()
        if self._heartbeat.is_alive():
            self._heartbeat.join()
        holder = process_record.read(self.path)
        if holder and holder.get("token") == self.token:
            with contextlib.suppress(OSError):  # a failing disk: it ends with this process, or with its heartbeat
                self.path.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _lock_file(self) -> bool:
        """Take the flock; True also where the file system has none, since the lock file alone then decides."""
        if self._lock is not None:
            return True
        descriptor = locks.open_file(self.directory / LOCK)
        try:
            locks.lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            holder = process_record.read(self.path)  # a suspended holder keeps its lock; its heartbeat tells
            return holder is not None and self._is_stale(holder)
        except OSError:
            os.close(descriptor)
            return True
        self._lock = descriptor
        return True

    def _require_permission(self) -> None:
        """Let nobody wait for a trainer of which this user may not know."""
        try:
            self.path.open("rb").close()
        except PermissionError:
            raise
        except OSError:  # gone, or a disk that fails for a while
            pass

    def _create(self) -> bool:
        holder = process_record.read(self.path)
        if holder is not None:
            if not self._is_stale(holder):
                return False
            whose = describe_owner(self.path)
            if process_record.remove(self.path, holder):
                print(f"took over {self.directory} from {whose}", file=sys.stderr)
        mine = {"token": self.token, "since": time.time(), "limit": self.limit}
        return process_record.create(self.path, process_record.identity() | mine)

    def _is_stale(self, holder: dict[str, Any]) -> bool:
        return process_record.has_ended(holder) or self._is_silent()

    def _is_silent(self) -> bool:
        """Whether the last heartbeat is too old, by the clock that stamps files here.

        One in the future says nothing of its age: it is too old when it has been seen unchanged for long enough.
        """
        stamps = self._read_stamps()
        if stamps is None:
            return False
        beat, now = stamps
        if beat <= now:
            return now - beat > self.limit
        if self._future is None or self._future[0] != beat:
            self._future = (beat, time.monotonic())
        return time.monotonic() - self._future[1] > self.limit

    def _read_stamps(self) -> tuple[float, float] | None:
        """When the last heartbeat was, and when it is now, by the clock that stamps files here; None if there is no
        lock.
        """
        probe = self.directory / f".clock.{self.token}"
        try:
            probe.touch()
            now = probe.stat().st_mtime
            return self.path.stat().st_mtime, now
        except FileNotFoundError:
            return None
        finally:
            probe.unlink(missing_ok=True)

    def _describe_clock_change(self) -> str | None:
        """Say that the last heartbeat lies in the future; None if it does not, by more than clocks differ."""
        stamps = self._read_stamps()
        if stamps is None or stamps[0] - stamps[1] <= self.limit / _BEATS:
            return None
        beat, now = (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp)) for stamp in stamps)
        return (
            f"Its lock {self.path} is stamped {beat}, and here it is {now}: a clock was set back since. If no trainer "
            f"is at work there, delete {self.path}; a trainer that waits for {self.limit:g} s without a new "
            "heartbeat takes it over"
        )

    def _refresh(self) -> None:
        while not self._finished.wait(self.limit / _BEATS):
            holder = process_record.read(self.path)
            if holder and holder.get("token") == self.token:
                with contextlib.suppress(OSError):
                    os.utime(self.path)


def describe_owner(path: Path) -> str:
    """Say for people who holds a lock; of a broken one, its file and what is wrong with it."""
    holder = process_record.read(path)
    if holder is None:
        return "an unknown trainer"
    if not holder:
        why = process_record.explain_fault(path)
        return f"an unknown trainer ({path} {why}; delete it if no trainer is running there)"
    return process_record.describe(holder)
