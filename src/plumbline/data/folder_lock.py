"""Lets one process at a time make the files of a folder; another one waits until it has ended."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from plumbline.core.operating_system import fcntl

#: In the folder; it stays there, since who waits for it holds it open.
LOCK = ".lock"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only process at a folder, which is made, for the time of a block; say so before waiting for another one.

    Between machines this holds as far as their file system's locks do; where it has none, a message says that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:  # another user's, who keeps it from being written; it can be locked all the same
        descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{folder}: another process is making its files; waiting until that has ended", file=sys.stderr)
            sys.stderr.flush()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            print(f"{path} cannot be locked ({error.strerror}): let no other process work there", file=sys.stderr)
        yield
    finally:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    """Whether no process is `alone` at a folder; False too where that cannot be told."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
