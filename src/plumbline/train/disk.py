"""Tells apart two faults of disks: no room (free some and continue), and a file that cannot be read just now.

Neither is damage. Damage is a file that is not there, or whose bytes were read and are not those that were written.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import FULL
from plumbline.core.permissions import denied


class NoRoom(PlumblineError):
    """Raised where the disk has no space, a quota is exceeded, or a file is larger than a limit allows."""


class Unreadable(PlumblineError):
    """Raised where the file system does not give a file back, so that nobody knows what is in it."""


def guarded(directory: Path, write: Callable[[], Any]) -> Any:
    """Call `write`, and turn the error of a full disk into a message that names the directory.

    Raises:
        NoRoom: no space, quota exceeded, or a file-size limit.
    """
    try:
        return write()
    except Exception as error:
        if not is_full(error):
            raise
        for leftover in directory.glob(".step-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        raise NoRoom(
            f"no disk space to save under {directory} ({error}); earlier checkpoints there are intact. Free space "
            "and start "
            f"the run again: it resumes from them"
        ) from error


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that there is no room."""
    while error is not None:
        if isinstance(error, NoRoom) or (isinstance(error, OSError) and error.errno in FULL):
            return True
        if any(f"os error {number})" in str(error) for number in FULL):  # safetensors writes from Rust
            return True
        error = error.__cause__ or error.__context__
    return False


@contextlib.contextmanager
def readable(directory: Path) -> Iterator[None]:
    """Turn an error of the file system in a ``with`` block into a message that says what to do.

    EIO and ESTALE: nothing was lost. No permission: whose file it is.

    Raises:
        Unreadable: the block raised an OSError that is no want of room.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise
        if isinstance(error, PermissionError):
            raise Unreadable(denied(error.filename or directory)) from error
        raise Unreadable(
            f"{error.filename or directory} cannot be read or changed ({error.strerror or error}); that is an "
            "access error, "
            f"not damage, and nothing under {directory} was given up. Start the run again when the file system works"
        ) from error
