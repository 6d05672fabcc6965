"""Lets one Snakemake at a time make files in a directory, and clears away what a dead one left behind.

Snakemake locks the files that it is to make. But whoever unlocks removes every lock of the directory (9.27.1), be it
after `snakemake plan` or after "Nothing to be done": from then on a second Snakemake may work on the first one's
targets. So one that is about to lock (`guard`) first holds the whole directory, or is refused with the holder's name:

- the kernel's lock (flock) on `.snakemake/plumbline-workflow.lock`, which ends with its process however that ends;
- a record of that process, `.snakemake/plumbline-workflow.json`, which alone decides where the file system has no
locks.

A record that is left behind, and Snakemake's locks with it, are removed when, and only when, its process is gone for
certain: it ran here (this boot, this process namespace) and its number is free or another's; or it had the kernel's
lock, which is free, and it is this kernel that would know: of another namespace of this boot, or of this host before a
power cut, on a file system that no other host has. Whoever may live on another host, or where there are no locks in
another namespace, is never overruled, unless a person states that it is gone: `snakemake --unlock`.

What locks nothing is let through: dry runs, --lint, --summary and the like, `plumbline plan`, the jobs themselves, and
--nolock, which neither holds the directory nor asks who does (trainers are then kept apart by their locks alone).

`python -m plumbline.operate.locks.workflow_lock` clears what a dead Snakemake left; the Makefile calls it before a
start.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import psutil

from plumbline.core import locks, process_record
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.project import snakemake_internals

#: In .snakemake. The first is never removed: a lock on a file that has lost its name keeps nobody out.
LOCK = "plumbline-workflow.lock"
RECORD = "plumbline-workflow.json"
#: Seconds in which one that holds the directory without a record yet may write it, or one that only looked be done.
PATIENCE = 2.0
#: File systems that belong to one kernel: where its lock is free, nobody of this host's name had it before a power cut.
#: On a shared one a lock may be known to one host alone (Lustre with localflock, BeeGFS and NFS with local locks).
OF_ONE_KERNEL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "overlay", "apfs"}
_MEANWHILE = (
    "wait for it or stop it. Meanwhile you may run: plumbline plan (not `snakemake plan`), "
    "snakemake --dry-run, plumbline status"
)
_UNLOCK = "If you are certain that it is gone: snakemake --unlock"


def guard() -> None:
    """Make this process hold the directory while it holds Snakemake's lock. The Snakefile calls it when it is read."""
    from snakemake_interface_common.exceptions import ApiError  # printed without a traceback

    @contextmanager
    def hold_alone(persistence: Path) -> Iterator[None]:
        try:
            with hold(persistence, shorten(" ".join(["snakemake", *sys.argv[1:]]), 80)):
                yield
        except PlumblineError as error:
            raise ApiError(str(error)) from None

    def overrule_the_dead(persistence: Path) -> None:
        try:
            overrule(persistence)
        except PlumblineError as error:
            raise ApiError(str(error)) from None

    snakemake_internals.take_lock_over(hold_alone, overrule_the_dead)


@contextmanager
def hold(persistence: Path, command: str) -> Iterator[None]:
    """Hold the directory whose .snakemake is `persistence` during a ``with`` block.

    What a dead Snakemake left is cleared.

    Raises:
        PlumblineError: somebody else holds it, or may.
    """
    with _flock(persistence) as locked:
        if cleared := _clear(persistence, locked):
            print(cleared, file=sys.stderr)
        record, token = persistence / RECORD, uuid.uuid4().hex
        mine = {
            "boot": process_record.boot(),
            "locked": locked,
            "command": command,
            "since": time.time(),
            "token": token,
        }
        try:
            created = process_record.create(record, process_record.identity() | mine)
        except OSError as error:
            raise PlumblineError(
                f"{record} cannot be written ({error.strerror}); run the same command again when the file system "
                "takes files"
            ) from None
        if not created:
            raise _make_refusal(persistence)  # where there are no locks, another one may come first
        try:
            yield
        finally:
            if (process_record.read(record) or {}).get("token") == token:
                record.unlink(missing_ok=True)


def clear(directory: Path) -> str | None:
    """Remove the locks that a Snakemake that is gone left in `directory`.

    Returns a sentence about them, None if there were none. They are removed here, under the kernel's lock: Snakemake's
    `--unlock` reads the whole workflow in between, long enough for somebody else to clear the same lock, start, and
    lose a lock that is not stale.

    Raises:
        PlumblineError: somebody holds the directory, or may.
    """
    persistence = directory / ".snakemake"
    if not (snakemake_internals.lock_files(persistence) or os.path.lexists(persistence / RECORD)):
        return None
    with _flock(persistence) as locked:
        return _clear(persistence, locked)


def describe_dead_lock(directory: Path) -> str | None:
    """State what `clear` would remove, and change nothing.

    Raises:
        PlumblineError: as of `clear`.
    """
    persistence = directory / ".snakemake"
    if not (snakemake_internals.lock_files(persistence) or os.path.lexists(persistence / RECORD)):
        return None
    with _flock(persistence) as locked:
        dead_holder = _find_dead_holder(persistence, locked)
    return dead_holder and f"the lock of a Snakemake that no longer runs ({dead_holder[1]})"


def overrule(persistence: Path) -> None:
    """Remove the record of the process that holds the directory, because a person states that it is gone (--unlock).

    Raises:
        PlumblineError: the process is still there.
    """
    with _flock(persistence) as locked:
        record = process_record.read(persistence / RECORD)
        if record and process_record.is_here(record) and not _is_dead(record, persistence, locked):
            raise _make_refusal(persistence)
        if record is not None:
            process_record.remove(persistence / RECORD, record)


@contextmanager
def _flock(persistence: Path) -> Iterator[bool]:
    """Have the kernel's lock; False where the file system has none."""
    path = persistence / LOCK
    try:
        descriptor = locks.open_file(path)
    except OSError as error:
        raise PlumblineError(f"{path} cannot be opened ({error.strerror}); make it a file that you can write") from None
    try:
        yield _lock(descriptor, persistence)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, persistence: Path) -> bool:
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            locks.lock(descriptor)
            return True
        except BlockingIOError:
            record = process_record.read(persistence / RECORD)
            if (record and not process_record.has_ended(record)) or time.monotonic() > patience:
                raise _make_refusal(persistence, has_kernel_lock=True) from None
            time.sleep(0.05)
        except OSError:
            return False


def _clear(persistence: Path, locked: bool) -> str | None:
    """`clear`, with the kernel's lock if there is one."""
    lock_files, dead_holder = snakemake_internals.lock_files(persistence), _find_dead_holder(persistence, locked)
    if dead_holder is None:
        return None
    record, who = dead_holder
    if not process_record.remove(persistence / RECORD, record):
        raise _make_refusal(persistence)  # somebody came first
    for lock in lock_files:
        lock.unlink(missing_ok=True)
    return f"removed the lock of a Snakemake that no longer runs ({who})"


def _find_dead_holder(persistence: Path, locked: bool) -> tuple[dict[str, Any], str] | None:
    """The record of one that is gone for certain, and who it was; None if there is nothing.

    Raises:
        PlumblineError: it may be alive.

    """
    path = persistence / RECORD
    record = process_record.read(path)
    if record is None:
        if snakemake_internals.lock_files(persistence):
            raise PlumblineError(
                f"{persistence.parent} is locked by a Snakemake that did not record which process it is (of "
                f"another or older workflow). {_UNLOCK}"
            )
        return None
    if record:
        who = process_record.describe(record)
        if not _is_dead(record, persistence, locked):
            raise _make_refusal(persistence)
    else:
        who = f"it is unknown which one: {path} {process_record.explain_fault(path)}, and is set aside"
        if not (locked and _find_filesystem(persistence) in OF_ONE_KERNEL):
            raise PlumblineError(
                f"{path} {process_record.explain_fault(path)}, so it is unknown whether {persistence.parent} is held. "
                f"{_UNLOCK}"
            )
    return record, who


def _is_dead(record: dict[str, Any], persistence: Path, locked: bool) -> bool:
    """Whether a recorded holder is gone for certain. `locked`: the kernel's lock, which it should have, is ours."""
    if process_record.is_here(record) and process_record.read_start_time(record["pid"]) != process_record.UNSEEN:
        return process_record.has_ended(record)
    same_boot = record.get("boot") is not None and record["boot"] == process_record.boot()
    same_host = record["host"] == socket.gethostname() and _find_filesystem(persistence) in OF_ONE_KERNEL
    return locked and record.get("locked", False) and (same_boot or same_host)


def _make_refusal(persistence: Path, has_kernel_lock: bool = False) -> PlumblineError:
    """The refusal. `has_kernel_lock`: the kernel states that the lock is another process's."""
    path = persistence / RECORD
    record = process_record.read(path)
    if record is None:
        who = "a Snakemake that is starting or ending"
    else:
        who = (
            process_record.describe(record)
            if record
            else f"an unknown Snakemake: {path} {process_record.explain_fault(path)}"
        )
    message = f"{persistence.parent} is held by {who}; {_MEANWHILE}."
    if record and not process_record.is_here(record):
        message += " It is on another host, or in another container, and not visible from here. "
        message += (
            f"If you are certain that it is gone, delete {persistence / LOCK}, then: snakemake --unlock"
            if has_kernel_lock
            else _UNLOCK
        )
    return PlumblineError(message)


def _find_filesystem(path: Path) -> str:
    """The kind of file system that `path` lies on, as the mount table has it; empty if it does not say."""
    path = path.resolve()
    mounted = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return max(mounted, key=lambda part: len(part.mountpoint)).fstype if mounted else ""


def main() -> None:
    """Clear the locks that a dead Snakemake left in the working directory, and report it."""
    if cleared := clear(Path.cwd()):
        print(cleared)


if __name__ == "__main__":
    run(main)
