"""Names how a verdict ends, for every program that gives one, and the exit code that tells a program so."""

from __future__ import annotations

from enum import StrEnum

from plumbline.core.errors import PlumblineError


class Outcome(StrEnum):
    """How a verdict on a candidate ends. (A loop must never read a full disk as "discard": errors end with 1.)"""

    KEEP = "keep"
    DISCARD = "discard"
    UNDECIDED = "undecided"
    CRASHED = "crashed"
    CANNOT_BE_JUDGED = "cannot be judged"
    IMPLAUSIBLE = "implausible"
    AS_GOOD = "as good"
    HOLDS = "holds"
    SHRINKS = "shrinks"
    TURNS = "turns"

    @property
    def exit_code(self) -> int:
        """The exit code of the commands that give a verdict."""
        return _EXIT_CODES[self]

    @property
    def is_kept(self) -> bool:
        """Whether the candidate is taken: it is better, or it is as good and that was the question."""
        return self in (Outcome.KEEP, Outcome.AS_GOOD)


_EXIT_CODES = {
    Outcome.KEEP: 0,
    Outcome.AS_GOOD: 0,
    Outcome.HOLDS: 0,  # the gain is there at other budgets too; shrinks and turns answer that it is not
    Outcome.DISCARD: 10,
    Outcome.SHRINKS: 10,
    Outcome.TURNS: 10,
    Outcome.UNDECIDED: 11,
    Outcome.CRASHED: 12,
    Outcome.CANNOT_BE_JUDGED: 13,
    Outcome.IMPLAUSIBLE: 14,  # a leak must not be kept by an exit code alone
}


class CannotBeJudgedError(PlumblineError):
    """What was given can be read, but there is nothing to judge by: no noise floor, a baseline that diverged, runs that
    are not of one thing, or that something else has changed.
    """

    exit_code = Outcome.CANNOT_BE_JUDGED.exit_code
