"""Takes locks of the kernel (flock) on files: a lock ends with the processes that have its file open, however they end.

Between machines they hold as far as their file system's locks do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, which is refused before anything is locked
    fcntl = ModuleType("fcntl")

#: The lock of a folder, in it; it stays there, since who waits for it holds it open.
OF_FOLDER = ".lock"


def lock(file: int | IO[str] | IO[bytes], *, wait: bool = False, shared: bool = False) -> None:
    """Lock an open file until it is closed.

    Args:
        file: the file, or its descriptor.
        wait: for another process to unlock it.
        shared: with others that lock it so.

    Raises:
        BlockingIOError: another process has the lock, and nobody waits for it.
        OSError: the file system has no locks.
    """
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def open_file(path: Path, mode: int = 0o666) -> int:
    """Open a file that is locked, which is made, and return its descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT, mode)


def open_locked(path: Path, mode: int = 0o666) -> int | None:
    """Open and lock a file, which is made; its descriptor, or None while another process has the lock."""
    descriptor = open_file(path, mode)
    try:
        lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor


def is_free(path: Path) -> bool:
    """Whether no process has the lock of a file; False too where that cannot be told."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        lock(descriptor, shared=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextmanager
def hold(path: Path, waiting: str, *, must: bool = False) -> Iterator[int]:
    """Have the lock of a file, which is made, during a block; yields its descriptor.

    Where the file system has no locks, a message says that.

    Args:
        waiting: printed before another process is waited for.
        must: refuse a file system without locks.

    Raises:
        OSError: the file system has none, and there `must` be one.
    """
    try:
        descriptor = open_file(path)
    except PermissionError:  # another user's, who keeps it from being written; it can be locked all the same
        descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            lock(descriptor)
        except BlockingIOError:
            print(waiting, file=sys.stderr, flush=True)
            lock(descriptor, wait=True)
        except OSError as error:
            if must:
                raise
            print(f"{path} cannot be locked ({error.strerror}): let no other process work there", file=sys.stderr)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Be the only process that makes the files of a folder, which is made, during a block."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = f"{folder}: another process is making its files; waiting until that has ended"
    with hold(folder / OF_FOLDER, waiting):
        yield
