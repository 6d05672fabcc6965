"""One line every few seconds, so that long work is seen to be alive."""

from __future__ import annotations

import sys
import time

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Counts units of work and says so on standard error, with a rate, at most every few seconds."""

    def __init__(self, label: str, unit: str) -> None:
        self.label, self.unit = label, unit
        self.count = 0
        self._started = self._said = time.monotonic()

    def add(self, count: int = 1) -> None:
        """`count` more units are done."""
        self.count += count
        now = time.monotonic()
        if now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            rate = self.count / (now - self._started)
            print(f"{self.label}: {self.count:,} {self.unit}, {rate:,.0f} a second", file=sys.stderr, flush=True)
