"""Printed numbers that note what is read of them."""

from __future__ import annotations

from plumbline.audit.published import Published


class Watched(Published):
    """Printed numbers that note which of their files are read, without their ending."""

    def __init__(self, printed: Published) -> None:
        super().__init__(printed.directory)
        self.seen: set[str] = set()

    def _file(self, name: str):
        self.seen.add(name.partition(".")[0])
        return super()._file(name)
