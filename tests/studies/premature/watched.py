"""Printed numbers that note what is read of them."""

from __future__ import annotations

from plumbline.results.published import Published
from tests.studies.premature.world import PUBLISHED


class Watched(Published):
    """Printed numbers that note which of their files are read."""

    def __init__(self) -> None:
        super().__init__(PUBLISHED.directory)
        self.seen: set[str] = set()

    def _file(self, name: str):
        self.seen.add(name.partition(".")[0])
        return super()._file(name)
