"""Bounds the log of a run: its begin and its end are kept, and its metric is read in what is left out.

While the run writes to it, the middle is taken out of the file as a hole, which takes no room, each time that it has
grown by `STEP`; when the run has ended, the hole is closed. A file system without holes has the whole log until then.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.metric import LeftOut
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: Bytes of a log that are kept: of its begin, and of its end.
HEAD, TAIL = 2**22, 2**24
_BLOCK = 2**20
#: Bytes of the middle after which it is taken out, and seconds that reading them may take.
STEP, SECONDS = 2**24, 2.0
_PAGE = 4096
#: Of fallocate: keep the size, make a hole.
_HOLE = 0x01 | 0x02


def bound(path: Path, said: MetricPart, gap: LeftOut) -> LeftOut:
    """Take the middle out of a log that is written to; returns what is left out now."""
    begin = max(gap.end, HEAD)
    try:
        end = path.stat().st_size - TAIL
        if end - begin < STEP:
            return gap
        with open(path, "r+b") as file:
            file.seek(end - _BLOCK)
            end += _after_line(file.read(_BLOCK), last=True) - _BLOCK
            texts, unread = {}, 0
            try:
                texts = metric.part(said, path, begin, end, SECONDS)
            except PlumblineError:
                unread = end - begin
            if not _make_hole(file.fileno(), begin // _PAGE * _PAGE if gap.end else begin, end // _PAGE * _PAGE):
                return gap
    except OSError:
        return gap
    return LeftOut(begin=gap.begin or begin, end=end, texts=gap.texts | texts, unread=gap.unread + unread)


def _make_hole(descriptor: int, begin: int, end: int) -> bool:
    """Give the room of a file's bytes back; False where the system or the file system cannot."""
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(call(descriptor, _HOLE, begin, end - begin) == 0)


def shorten(path: Path) -> None:
    """Leave out the middle of a log that is longer, and say there how much; in place, as the disk may be full."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size <= HEAD + TAIL + _BLOCK:
        return
    with open(path, "r+b") as file:
        begin = _after_line(file.read(HEAD), last=True)
        file.seek(size - TAIL)
        end = size - TAIL + _after_line(file.read(_BLOCK), last=False)
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
