"""Being asked to stop. Imports nothing heavy, so that the signal is caught while the rest is still being imported."""

from __future__ import annotations

import signal
from types import FrameType


class Stopped(Exception):
    """Raised at a place where work can be left, once the process has been asked to stop."""


class StopRequest:
    """Set by SIGTERM; polled in every loop. The signal itself does nothing, so no file is left half written."""

    def __init__(self) -> None:
        self.asked = False

    def install(self) -> StopRequest:
        """Catch SIGTERM in this process from now on."""
        signal.signal(signal.SIGTERM, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def poll(self) -> None:
        """Leave the work at hand if asked to.

        Raises:
            Stopped: SIGTERM has come.
        """
        if self.asked:
            raise Stopped
