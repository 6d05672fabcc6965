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
_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """The result of a check of `subject`: its `state`, and a `message` with file or key and any remedy."""

    state: State
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.state:<10}  {self.subject:<24}  {self.message}"


def at_once(ask: Callable[[_Question], _Answer], questions: Iterable[_Question]) -> list[_Answer]:
    """Answer questions in parallel, since each mostly waits for a network or a program; keeps their order."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(ask, questions))
