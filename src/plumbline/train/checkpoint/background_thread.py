"""Runs one piece of work at a time in a thread, while its caller continues."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundThread:
    """Runs work in a thread. The work takes no part in collectives and touches nothing that training changes.

    The thread is a daemon: a process that is told to end at once (the second Ctrl-C) does not wait for the disk, and
    what was half written is a temporary directory, as after a kill.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], None]) -> None:
        """Start `work` in the thread as soon as the work before it has ended.

        Raises:
            Exception: what the work before it raised, which nobody has asked for yet.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name=self.name, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until no work is under way.

        Raises:
            Exception: what the work raised, as it was; once.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failure = error
