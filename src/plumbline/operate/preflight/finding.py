"""Defines what a check reports: one thing that a run needs, and how it stands."""

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
class Finding:
    """`state`: all right, to be known though nothing stops, not to be known from here, or it would stop a run.

    `words` name file or key and the remedy where there is something to be done.
    """

    state: State
    what: str
    words: str

    def __str__(self) -> str:
        return f"{self.state:<10}  {self.what:<24}  {self.words}"


def at_once(ask: Callable[[_Given], _Found], of: Iterable[_Given]) -> list[_Found]:
    """Answers in their order, of questions that mostly wait for somebody else."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(ask, of))
