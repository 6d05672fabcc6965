"""Distinguishes three faults of disks: no room (free some and continue), a file system that fails or may only be read,
and a file that cannot be read just now.

None is damage, and none is the run's fault. Damage is a file that is not there, or whose bytes were read and are not
those that were written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import FULL, find_disk_error
from plumbline.core.permissions import explain_denial, find_nearest


class DiskFull(PlumblineError):
    """Raised where the disk has no space, a quota is exceeded, or a file is larger than a limit allows."""


class UnreadableFile(PlumblineError):
    """Raised where the file system does not give a file back, so that nobody knows what is in it, or does not take
    it.
    """


def guard_write(directory: Path, write: Callable[[], Any], *, state: Path | None = None) -> Any:
    """Call `write`, and turn an error of the disk into a message that names the file.

    `state`: the run's state, whose checkpoints the message tells of, where that is not `directory`.

    Raises:
        DiskFull: no space, quota exceeded, or a file-size limit.
        UnreadableFile: the file system fails, may only be read, or denies this user access.
    """
    try:
        return write()
    except Exception as error:
        disk_error = describe_disk_error(error, state or directory)
        if disk_error is None or disk_error is error:
            raise
        for leftover in directory.glob(".step-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        raise disk_error from error


def require_writable(directory: Path) -> None:
    """Refuse a folder of outputs that may only be read, before a run is trained that could not leave them there.

    Raises:
        UnreadableFile: its file system is mounted for reading alone.
    """
    if os.statvfs(find_nearest(directory)).f_flag & os.ST_RDONLY:
        raise _make_unreadable_file(OSError(errno.EROFS, os.strerror(errno.EROFS), str(directory)), directory)


def describe_disk_error(error: BaseException, directory: Path) -> DiskFull | UnreadableFile | None:
    """Turn an error of the disk, or one caused by such an error, into a message; return None for any other error.

    `directory` is named if the error does not name a file.
    """
    if isinstance(error, (DiskFull, UnreadableFile)):
        return error
    cause = _disk_error(error)
    if cause is None:
        return None
    if cause.errno in FULL:
        checkpoints = sorted(path.name for path in directory.glob("step-*") if not path.suffix)
        intact = f"; earlier checkpoints there are intact, up to {checkpoints[-1]}" if checkpoints else ""
        remedy = "Free space and start the run again" + (": it resumes from them" if checkpoints else "")
        return DiskFull(f"no disk space to save under {directory} ({cause}){intact}. {remedy}")
    return _make_unreadable_file(cause, directory)


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that there is no room."""
    cause = None if error is None else _disk_error(error)
    return isinstance(error, DiskFull) or (cause is not None and cause.errno in FULL)


def find_errno(error: BaseException) -> int | None:
    """The system's number for an error that is the disk's or came from one; None of any other."""
    cause = _disk_error(error)
    return None if cause is None else cause.errno


@contextlib.contextmanager
def explain_read_errors(directory: Path) -> Iterator[None]:
    """Turn an error of the file system in a ``with`` block into a message that says what to do.

    EIO and ESTALE: nothing was lost. No permission: whose file it is.

    Raises:
        UnreadableFile: the block raised an OSError other than a lack of space.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise
        raise _make_unreadable_file(error, directory) from error


def _disk_error(error: BaseException) -> OSError | None:
    """The error of the disk that an error is, or came from."""
    if isinstance(error, PermissionError):
        return error
    current: BaseException | None = error
    while current is not None:
        if (disk_error := find_disk_error(current)) is not None:
            return disk_error
        current = current.__cause__ or current.__context__
    return None


def _make_unreadable_file(error: OSError, directory: Path) -> UnreadableFile:
    if isinstance(error, PermissionError):
        return UnreadableFile(explain_denial(error.filename or directory))
    read_only = error.errno == errno.EROFS
    remedy = "when it can be written, or name another folder" if read_only else "when the file system works"
    return UnreadableFile(
        f"{error.filename or directory} cannot be read or changed ({error.strerror or error}); that is an "
        f"access error, not damage, and nothing under {directory} was given up. Start the run again {remedy}"
    )
