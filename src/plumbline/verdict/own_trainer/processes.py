"""Ends what a run has started: known by a token that its environment carries, by its session, or by its descent.

Launchers (torchrun) put their workers into sessions of their own, which a signal to a process group does not reach. A
process that leaves its session and clears its environment is known by its descent, as long as the process that makes
the run is there, which adopts it (`adopt_orphans`). What cannot be found: such a process after a kill -9 of its
maker, and what another program starts for the run (a container's daemon, ssh, at).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from plumbline.core import process_record

#: The variable by which every process of a run is known, and the one that names where its Python processes report.
TOKEN, REPORT = "PLUMBLINE_RUN", "PLUMBLINE_REPORT"


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when its parent ends, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(1, int(number))  # PR_SET_PDEATHSIG


def adopt_orphans() -> bool:
    """Become the parent of descendants that lose theirs, so that they can be found; False where the kernel cannot."""
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) == 0)  # PR_SET_CHILD_SUBREAPER
    return False


def end(mark: str, grace: float, leader: int) -> None:
    """Ask everything that carries a mark to end, in whatever session, everything of a leader's session, whatever it
    carries (`env -i`), and every descendant of this process; and end at once what is still there after a grace (in
    seconds).
    """
    until = time.monotonic() + grace
    for each in carriers(mark, leader) if grace else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGTERM)
    while time.monotonic() < until and carriers(mark, leader):
        time.sleep(0.1)
    kill_carriers(mark, leader)


def kill_carriers(mark: str, leader: int | None = None) -> int:
    """End the `carriers` of a mark at once; returns how many processes did."""
    found: set[int] = set()
    for _ in range(40):  # a process may start another one meanwhile
        if not (left := carriers(mark, leader)):
            break
        found.update(left)
        for each in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(0.05)
    return len(found)


def carriers(mark: str, leader: int | None = None) -> list[int]:
    """The processes of this machine whose environment has a variable that begins with a mark, `NAME=value...`; where a
    leader is named, also those of its session, and the descendants of this process, which began it.
    """
    begin, found, own = mark.encode(), [], set() if leader is None else _descendants()
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            content, session = b"", 0
            with contextlib.suppress(OSError):  # another user's, or gone
                session = os.getsid(int(entry))
                content = Path(f"/proc/{entry}/environ").read_bytes()
            there = (
                session == leader or int(entry) in own or any(each.startswith(begin) for each in content.split(b"\0"))
            )
            if there and process_record.started(int(entry)) is not None:  # None: it has ended and waits to be noticed
                found.append(int(entry))
    return found


def _descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parent = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(entry))
    found, open_ = set[int](), [os.getpid()]
    while open_:
        more = children.get(open_.pop(), [])
        found.update(more)
        open_ += more
    return found
