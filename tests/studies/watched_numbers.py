"""Printed numbers that note what is read of them."""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers


class Watched(PrintedNumbers):
    """Printed numbers that note which of their files are read, without their ending."""

    def __init__(self, printed: PrintedNumbers) -> None:
        self.seen: set[str] = set()
        super().__init__(printed.directory, reads=_Noted(self.seen))


class _Noted(set[str]):
    """Has every file, and notes which one is requested."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.seen = names

    def __contains__(self, name: object) -> bool:
        self.seen.add(str(name))
        return True
