"""Handles a request to stop this process.

Imports nothing heavy, so that the signal is caught while the rest is still being imported.
"""

from __future__ import annotations

import signal
from types import FrameType


class StopRequested(Exception):
    """Raised at a place where work can be left, once the process has been asked to stop."""


class StopRequest:
    """Records SIGTERM, Ctrl-C, or that the terminal was closed (SIGHUP), to be polled in every loop. The signal itself
    does nothing, so no file is left half written.

    A second Ctrl-C ends the process at once: whoever sits there does not want to wait for a checkpoint.
    """

    def __init__(self) -> None:
        self.requested = False

    def install(self) -> StopRequest:
        """Catch these signals in this process from now on."""
        signal.signal(signal.SIGTERM, self._ask)
        for number in (signal.SIGINT, signal.SIGHUP):
            # A shell's background jobs do not hear Ctrl-C, and what nohup starts outlives its terminal.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def poll(self) -> None:
        """Leave the work at hand if asked to.

        Raises:
            StopRequested: a signal has come.
        """
        if self.requested:
            raise StopRequested
