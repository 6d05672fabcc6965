"""Ends a program that Ctrl-C interrupts without a traceback: whoever pressed it knows why it ends.

Imports nothing heavy, so that the imports themselves may be interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import TracebackType
from typing import NoReturn


def expect() -> None:
    """Have the interpreter print no traceback of a KeyboardInterrupt that nobody catches; it ends by SIGINT anyway."""
    sys.excepthook = _hook


def end(number: signal.Signals = signal.SIGINT) -> NoReturn:
    """End this process as Ctrl-C (or another signal) ends one, which shells and Snakemake look for: by the signal.

    The interpreter's last work is left out: it may wait for a disk, and a further Ctrl-C would meet it.
    """
    signal.signal(number, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # where it is blocked


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
