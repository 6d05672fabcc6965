"""One trainer at a time: a lease in the state directory.

The lease is a file made with O_EXCL that names its holder; a thread refreshes its modification time. Beside it an
flock, where the file system has locks, settles races on one machine at once. A lease is stale, and is taken over,

- when its holder ran on this very machine and that process is gone (compared by process id and start time), or
- when its heartbeat is older than `limit` seconds, by the clock of the file system that holds it.

A holder that lost its lease (it was suspended, or cut off from the file system) notices before it writes the next
checkpoint, and before each of its outputs: `check` raises, and the trainer stops.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError
from plumbline.train.stop import StopRequest

NAME = "lease.json"
LOCK = "lease.lock"


class LeaseError(PlumblineError):
    """Another trainer has the run."""


class Lease:
    """Held from `acquire` to `release`; use as a context manager."""

    def __init__(self, directory: Path, *, limit: float, wait: float, stop: StopRequest | None = None) -> None:
        """`limit`: seconds after which a silent holder is taken for dead; `wait`: how long to wait for a live one."""
        self.directory, self.limit, self.wait = directory, limit, wait
        self.path = directory / NAME
        self.stop = stop or StopRequest()
        self.token = uuid.uuid4().hex
        self._lock: int | None = None
        self._finished = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, name="lease heartbeat", daemon=True)

    def __enter__(self) -> Lease:
        try:
            self.acquire()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(self, *reason: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lease, waiting for a live holder.

        Raises:
            LeaseError: another trainer still holds it after `wait` seconds.
            Stopped: asked to stop while waiting.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        deadline, told = time.monotonic() + self.wait, False
        while not (self._lock_file() and self._create()):
            holder = describe(read(self.path))
            if time.monotonic() >= deadline:
                raise LeaseError(
                    f"{self.directory} is held by {holder}; waited {self.wait:g} s. Two trainers may not train one "
                    f"run: stop the other one, or wait until it ends (it is taken for dead {self.limit:g} s after "
                    f"its last heartbeat)"
                )
            if not told:
                print(f"waiting up to {self.wait:g} s for {self.directory}, held by {holder}", file=sys.stderr)
                told = True
            self.stop.poll()
            time.sleep(min(0.2, self.limit / 10))
        self._heartbeat.start()

    def check(self) -> None:
        """Make sure the lease is still ours, before anything is written.

        Raises:
            LeaseError: it was taken over.
        """
        for _ in range(5):
            holder = read(self.path)
            if holder and holder.get("token") == self.token:
                return
            if holder:
                break
            time.sleep(0.1)  # a take-over that was aimed at another lease puts ours back
        raise LeaseError(
            f"{self.directory} was taken over by {describe(read(self.path))} while this trainer was silent; "
            f"nothing more is written here"
        )

    def release(self) -> None:
        """Give the lease back, if it is still ours."""
        self._finished.set()
        if self._heartbeat.is_alive():
            self._heartbeat.join()
        holder = read(self.path)
        if holder and holder.get("token") == self.token:
            self.path.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _lock_file(self) -> bool:
        """Take the flock; True also where the file system has none, since the lease file alone then decides."""
        if self._lock is not None:
            return True
        descriptor = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            holder = read(self.path)  # a suspended holder keeps its lock; its heartbeat tells
            return holder is not None and self._stale(holder)
        except OSError:
            os.close(descriptor)
            return True
        self._lock = descriptor
        return True

    def _create(self) -> bool:
        holder = read(self.path)
        if holder is not None:
            if not self._stale(holder):
                return False
            self._remove(holder)
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        try:
            with os.fdopen(descriptor, "w") as handle:
                json.dump(identity() | {"token": self.token, "since": time.time(), "limit": self.limit}, handle)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError:  # a full disk: half a lease would be waited for
            self.path.unlink(missing_ok=True)
            raise
        return True

    def _remove(self, judged: dict[str, Any]) -> None:
        """Take the stale lease away, and put it back if it was in truth another one, just made."""
        aside = self.directory / f".{NAME}.{self.token}"
        try:
            os.rename(self.path, aside)
        except FileNotFoundError:
            return
        found = read(aside)
        if found is not None and found.get("token") != judged.get("token"):
            with contextlib.suppress(FileExistsError):
                os.link(aside, self.path)
        else:
            print(f"took over {self.directory} from {describe(judged)}", file=sys.stderr)
        aside.unlink(missing_ok=True)

    def _stale(self, holder: dict[str, Any]) -> bool:
        return dead(holder) or self._silent()

    def _silent(self) -> bool:
        """Whether the last heartbeat is too old, by the clock that stamps files here."""
        probe = self.directory / f".clock.{self.token}"
        try:
            probe.touch()
            return probe.stat().st_mtime - self.path.stat().st_mtime > self.limit
        except FileNotFoundError:
            return False
        finally:
            probe.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._finished.wait(self.limit / 8):
            holder = read(self.path)
            if holder and holder.get("token") == self.token:
                with contextlib.suppress(OSError):
                    os.utime(self.path)


def read(path: Path) -> dict[str, Any] | None:
    """A lease's content; empty if it is being written, None if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (json.JSONDecodeError, OSError):
        return {}


def dead(holder: dict[str, Any]) -> bool:
    """Whether a holder ran on this very machine and is gone."""
    return holder.get("machine") == machine() and started(holder["pid"]) != holder.get("process_started")


def identity() -> dict[str, Any]:
    """Who this process is, so that the same machine can tell whether it still runs."""
    return {
        "host": socket.gethostname(),
        "machine": machine(),
        "pid": os.getpid(),
        "process_started": started(os.getpid()),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def machine() -> str:
    """This boot of this machine and this process namespace: only within it does a process id mean anything."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return "/".join(parts)


def started(pid: int) -> str | None:
    """When a process began, in the kernel's own words; None if it is gone (a zombie is)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self").exists():
            return None
        try:
            os.kill(pid, 0)
        except OSError:
            return None
        return "running"
    return None if fields[0] in "ZX" else fields[19]


def describe(holder: dict[str, Any] | None) -> str:
    """A holder in words."""
    if not holder:
        return "an unknown trainer"
    job = f", SLURM job {holder['slurm_job_id']}" if holder.get("slurm_job_id") else ""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.get("since", 0)))
    return f"process {holder.get('pid')} on {holder.get('host')}{job}, since {since}"
