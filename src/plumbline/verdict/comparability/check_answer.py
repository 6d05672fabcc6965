"""Holds what a check of comparability answers: it holds, is to be told, refuses the verdict, or is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """The four answers of a check, in the words of pages, the console and JSON."""

    HOLDS = "holds"
    TOLD = "told"
    REFUSES = "refuses"
    NOT_KNOWN = "not known here"


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What a check says of a comparison.

    Attributes:
        answer: one of four; `REFUSES` ends the verdict as "cannot be judged" (13).
        text: a sentence without its full stop: what holds, what is told beside the verdict, why it is refused with the
            remedy, or what the source does not say.
        numbers: what the sentence states, by name.
    """

    answer: Answer
    text: str
    numbers: Mapping[str, float | str | None]


def holds(text: str, **numbers: float | str | None) -> CheckAnswer:
    """Answer that a check holds."""
    return CheckAnswer(Answer.HOLDS, text, numbers)


def tell(text: str, **numbers: float | str | None) -> CheckAnswer:
    """Answer what stands beside the verdict, which it does not change."""
    return CheckAnswer(Answer.TOLD, text, numbers)


def refuse(text: str, **numbers: float | str | None) -> CheckAnswer:
    """Answer why there is no verdict; the text ends with the remedy."""
    return CheckAnswer(Answer.REFUSES, text, numbers)


def not_known(text: str, **numbers: float | str | None) -> CheckAnswer:
    """Answer what the source does not say; `numbers`: what it says all the same."""
    return CheckAnswer(Answer.NOT_KNOWN, text, numbers)
