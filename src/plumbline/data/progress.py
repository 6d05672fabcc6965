"""Shows that long work is alive: a bar in a terminal, one line every few seconds in a log."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tqdm import tqdm

SECONDS_BETWEEN_LINES = 5.0


class ProgressCounter:
    """Counts units of work on standard error, with a rate, and the time left where the `total` is known."""

    def __init__(self, label: str, unit: str, total: int | None = None) -> None:
        self.label, self.unit, self.total = label, unit, total
        self.count = 0
        self._started = self._said = time.monotonic()
        self._bar: tqdm | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from tqdm import tqdm  # a sixth of a stage's start, and most have nothing to show

            self._bar = tqdm(desc=self.label, unit=f" {self.unit}", total=self.total, dynamic_ncols=True, disable=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, count: int = 1) -> None:
        """Count `count` more units as done."""
        self.count += count
        if self._bar is not None:
            self._bar.update(count)
            return
        now = time.monotonic()
        if now - self._said >= SECONDS_BETWEEN_LINES:
            from tqdm import tqdm

            self._said = now
            line = tqdm.format_meter(
                self.count, self.total, now - self._started, prefix=self.label, unit=f" {self.unit}", ncols=0
            )
            print(line, file=sys.stderr, flush=True)
