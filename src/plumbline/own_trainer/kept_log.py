"""Shortens the log of a run that has ended, once its metric is read: its begin and its end are kept."""

from __future__ import annotations

import os
from pathlib import Path

#: Bytes of a log that are kept: of its begin, and of its end.
HEAD, TAIL = 2**22, 2**24
_BLOCK = 2**20


def shorten(path: Path, head: int = HEAD, tail: int = TAIL) -> None:
    """Leave out the middle of a log that is longer, and say there how much; in place, as the disk may be full."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size <= head + tail + _BLOCK:
        return
    with open(path, "r+b") as file:
        begin = _after_line(file.read(head), last=True)
        file.seek(size - tail)
        end = size - tail + _after_line(file.read(_BLOCK), last=False)
        file.seek(begin)
        file.write(b"\n[plumbline left out %d bytes here]\n" % (end - begin))
        to = file.tell()
        while True:
            file.seek(end)
            block = file.read(_BLOCK)
            if not block:
                break
            file.seek(to)
            file.write(block)
            to, end = to + len(block), end + len(block)
        file.truncate(to)
        os.fsync(file.fileno())


def _after_line(block: bytes, *, last: bool) -> int:
    """Where a line begins in a block: after its last line end, or after its first; its end, or 0, without one."""
    at = block.rfind(b"\n") if last else block.find(b"\n")
    return at + 1 if at >= 0 else len(block) if last else 0
