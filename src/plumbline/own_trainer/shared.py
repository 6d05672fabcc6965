"""Notices what changes in the folders that all runs share: they are the user's own, and can be written to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

#: Where more files are shared, none is looked at: a look before and one after each run would take too long.
MOST = 20_000
#: What Python writes wherever it imports.
_CACHES = ("__pycache__",)

Stamps = Mapping[str, tuple[int, int, int]]


def stamps(shared: Sequence[str]) -> Stamps | None:
    """The size, time and inode of each shared file, by its path; None where there are too many."""
    found: dict[str, tuple[int, int, int]] = {}
    for path in (path for one in shared for path in _files(one)):
        if len(found) == MOST:
            return None
        try:
            there = os.stat(path)
        except OSError:  # it was there a moment ago, or is a link to nothing
            continue
        found[path] = (there.st_size, there.st_mtime_ns, there.st_ino)
    return found


def touched(before: Stamps | None, after: Stamps | None) -> list[str]:
    """The files that differ between two looks."""
    if before is None or after is None:
        return []
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in _CACHES]
        for name in names:
            yield os.path.join(folder, name)
