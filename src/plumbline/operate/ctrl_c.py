"""Lets a second Ctrl-C go to Snakemake's jobs alone while Snakemake ends because of the first: a training saves at the
first one, and ends at once at the second.

Left to itself, the wait for the jobs falls to the second one, with tracebacks about an event loop that is running
(9.27.1), and on a cluster before the jobs are cancelled.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from plumbline.project import snakemake_internals

#: Seconds after an interrupt in which another one is not heeded: a key that is held, Snakemake on its way to the wait.
_ONE = 1.0
_at = -_ONE
_waits = False


def watch(workflow: Any) -> None:
    """Have a workflow that is about to run its jobs heed one Ctrl-C; called at its start."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell's background jobs do not hear it
    if heard and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
        snakemake_internals.before_cancelling(workflow, _wait)


def _wait() -> None:
    global _waits
    _waits = True


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _at
    if not _waits and time.monotonic() - _at > _ONE:
        _at = time.monotonic()
        raise KeyboardInterrupt
    # No print: the signal may have come within one.
    message = f"\nwaiting for the jobs to end; to leave them as they are: kill -9 {os.getpid()}\n"
    os.write(sys.stderr.fileno(), message.encode())
