"""Ends what a run has started, known by a token that its environment carries.

Launchers (torchrun) put their workers into sessions of their own, which a signal to a process group does not reach.
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


def end(mark: str, grace: float, leader: int) -> None:
    """Ask everything that carries a mark to end, in whatever session, and everything of a leader's session, whatever
    it carries (`env -i`); and end at once what is still there after a grace (in seconds).
    """
    until = time.monotonic() + grace
    for each in carriers(mark, leader) if grace else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGTERM)
    while time.monotonic() < until and carriers(mark, leader):
        time.sleep(0.1)
    kill_carriers(mark, leader)


def kill_carriers(mark: str, leader: int | None = None) -> int:
    """End everything that carries a mark, or is of a leader's session, at once; returns how many processes did."""
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
    """The processes of this machine whose environment has a variable that begins with a mark, `NAME=value...`, or that
    are of a leader's session.
    """
    begin, found = mark.encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            try:
                content = Path(f"/proc/{entry}/environ").read_bytes()
                session = os.getsid(int(entry))
            except OSError:
                continue
            there = session == leader or any(each.startswith(begin) for each in content.split(b"\0"))
            if there and process_record.started(int(entry)) is not None:  # None: it has ended and waits to be noticed
                found.append(int(entry))
    return found
