"""Defines what a check reports: one thing that a run needs, and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

State = Literal["ok", "note", "not known", "would stop"]
OK: Final = "ok"
NOTE: Final = "note"
UNKNOWN: Final = "not known"
STOP: Final = "would stop"
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One thing that was checked (`what`), and its `state`: fine, worth knowing, not known from here, or a stop.

    `words` name file or key and the remedy where there is something to be done.
    """

    state: State
    what: str
    words: str

    def __str__(self) -> str:
        return f"{self.state:<10}  {self.what:<24}  {self.words}"


def at_once(ask: Callable[[_Given], _Found], of: Iterable[_Given]) -> list[_Found]:
    """Ask many things at a time, since each mostly waits for a network or a program; the answers in their order."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(ask, of))
