"""Reads which files outside of its copy a run read and wrote, by the notes that its Python processes left
(`child/plumbline_outside.py`).
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

#: By how many seconds the clock of a file system may lag.
LAG = 0.02


class OutsideFiles(Struct, frozen=True):
    """The files outside of its copy that a run opened.

    Attributes:
        read: path -> when it was last written before it was read (seconds since the epoch).
        written: paths of those that it changed.
    """

    read: dict[str, float] = {}
    written: list[str] = []


def read_outside_files(folder: Path, began: float) -> OutsideFiles | None:
    """Read the notes in a folder of reports of a run that began then; None where no Python of it reported anything."""
    if not any(folder.glob("*.began")):
        return None
    read: dict[str, float] = {}
    opened: set[str] = set()
    for path in folder.glob("*.outside"):
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            with suppress(ValueError):  # the line of a process that was ended in it
                kind, name, time = json.loads(line)
                if kind in "ru" and time is not None:
                    read[name] = min(time, read.get(name, time))
                if kind in "wau":
                    opened.add(name)
    return OutsideFiles(
        read=dict(sorted(read.items())), written=sorted(each for each in opened if _is_new(each, began))
    )


def _is_new(path: str, began: float) -> bool:
    """Whether a file was changed since then; one that is gone was the run's own."""
    with suppress(OSError):
        return os.lstat(path).st_ctime >= began - LAG
    return False
