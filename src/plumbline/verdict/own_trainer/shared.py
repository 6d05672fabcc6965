"""Notices what changes in the folders that all runs share: they are the user's own, and can be written to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

#: Seconds that a look before a run may take. Of more files than it comes to, the others are not looked at.
SECONDS = 3.0
#: What Python writes wherever it imports.
_CACHES = ("__pycache__",)

_Stamp = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a look saw.

    Attributes:
        files: size, time and inode of each file, by its path.
        folders: those whose every file was looked at.
        left: those that it did not come to.
    """

    files: dict[str, _Stamp] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)


def look(shared: Sequence[str], seconds: float = SECONDS) -> Look:
    """Look at the files that are shared, folder by folder, as far as the time goes."""
    until, open_ = time.monotonic() + seconds, list(reversed(shared))
    seen = Look()
    while open_:
        if time.monotonic() > until:
            return Look(files=seen.files, folders=seen.folders, left=set(open_))
        path = open_.pop()
        if os.path.isdir(path):
            files, folders = _listed(path)
            seen.files.update(_stamps(files))
            seen.folders.add(path)
            open_ += reversed(folders)
        else:
            seen.files.update(_stamps([path]))
    return seen


def touched(before: Look) -> list[str]:
    """The files that differ from a look, new ones and those that are gone among them, in what it came to."""
    now: dict[str, _Stamp] = {}
    known = before.folders | before.left
    for folder in before.folders:
        files, folders = _listed(folder)
        now.update(_stamps(files))
        now.update(look([new for new in folders if new not in known]).files)
    now.update(_stamps(path for path in before.files if path not in now))
    return sorted(path for path in before.files.keys() | now.keys() if before.files.get(path) != now.get(path))


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """The files and the folders in a folder; links to folders are neither, as `os.walk` has it."""
    files: list[str] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders += [] if entry.name in _CACHES else [entry.path]
            elif not entry.is_dir():
                files.append(entry.path)
    return files, sorted(folders)


def _stamps(paths: Sequence[str] | Iterator[str]) -> Iterator[tuple[str, _Stamp]]:
    for path in paths:
        with suppress(OSError):  # it was there a moment ago, or is a link to nothing
            there = os.stat(path)
            yield path, (there.st_size, there.st_mtime_ns, there.st_ino)
