"""Names how a verdict ends, for every program that gives one, and the exit code that tells a program so."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How a verdict on a candidate ends. (A loop must never read a full disk as "discard": errors end with 1.)"""

    KEEP = "keep"
    DISCARD = "discard"
    UNDECIDED = "undecided"
    CRASHED = "crashed"
    CANNOT_BE_JUDGED = "cannot be judged"
    IMPLAUSIBLE = "implausible"

    @property
    def exit_code(self) -> int:
        """The exit code of the commands that give a verdict."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Outcome.KEEP: 0,
    Outcome.DISCARD: 10,
    Outcome.UNDECIDED: 11,
    Outcome.CRASHED: 12,
    Outcome.CANNOT_BE_JUDGED: 13,
    Outcome.IMPLAUSIBLE: 14,  # a leak must not be kept by an exit code alone
}
