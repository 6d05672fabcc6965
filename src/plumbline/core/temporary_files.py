"""Names what is written before it gets its own name, with its owner, and removes what owners that were killed left.

A temporary file or folder lies next to the file that it becomes: ``.train.jsonl.1f00a2b3_4711_123456_9c0d`` is to be
``train.jsonl``, and is process 4711's, of a machine, boot and process namespace with that hash, which began at that
tick. Only on that machine does the number mean anything: what another one's process left is listed by ``plumbline
cleanup`` and removed by nobody unasked.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from plumbline.core import live_processes

_NAME = re.compile(r"\.(.+)\.([0-9a-f]{8})_(\d+)_(\d+)_[0-9a-f]{4}")
#: The start of a process in a name, where the system does not tell it.
_NO_START = "0"

#: Folders that a process has looked through, by its id: a forked one looks for itself.
_searched: set[tuple[int, str]] = set()


@dataclass(frozen=True, kw_only=True, slots=True)
class TemporaryName:
    """What the name of a temporary file says: the name of the file that it was to become (`target`), and its owner."""

    target: str
    machine: str
    pid: int
    started: str

    @property
    def is_here(self) -> bool:
        """Whether the owner is a process of this machine, boot and process namespace."""
        return self.machine == _machine(os.getpid())

    @property
    def is_abandoned(self) -> bool:
        """Whether the owner ran on this very machine and has certainly ended."""
        if not self.is_here:
            return False
        now = live_processes.read_start_time(self.pid)
        return now is None or (self.started != _NO_START and now not in (live_processes.UNSEEN, self.started))


def choose_path(path: Path) -> Path:
    """Name a temporary file or folder of this process, next to the `path` that it is to become."""
    pid = os.getpid()
    return path.with_name(f".{path.name}.{_machine(pid)}_{pid}_{_read_start(pid)}_{secrets.token_hex(2)}")


def parse(name: str) -> TemporaryName | None:
    """Read the name of a temporary file or folder; None of any other name."""
    match = _NAME.fullmatch(name)
    return match and TemporaryName(target=match[1], machine=match[2], pid=int(match[3]), started=match[4])


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes of this machine were writing in a folder; once a process, as long as it lives."""
    key = (os.getpid(), os.fspath(folder))
    if key in _searched:
        return
    _searched.add(key)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (name := parse(entry.name)) and name.is_abandoned:
                with suppress(OSError):  # another process may be removing it
                    shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)


@contextmanager
def make_folder(path: Path) -> Iterator[Path]:
    """Make a temporary folder next to `path` for the time of a block."""
    remove_abandoned(path.parent)
    folder = choose_path(path)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _machine(pid: int) -> str:
    return hashlib.sha256(live_processes.machine().encode()).hexdigest()[:8]


@cache
def _read_start(pid: int) -> str:
    since = live_processes.read_start_time(pid)
    return since if since is not None and since.isdecimal() else _NO_START
