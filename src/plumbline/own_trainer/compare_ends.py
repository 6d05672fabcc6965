"""Compares how a run ended with how the baseline's runs did: what those do as well is no failure of this one."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from plumbline.own_trainer import log_end, process_ends
from plumbline.own_trainer.requests import Result

#: Runs of the baseline that must end at one place before an earlier end is a failure: one alone says nothing.
LEAST = 2
_UNKNOWN = (
    "whether the baseline's runs have that is not known, as an older Plumbline made them: plumbline setup-trainer "
    "--again makes others"
)


class ComparedEnd(Struct, frozen=True):
    """What a comparison says of a run.

    Attributes:
        why: why it counts as crashed; empty where it does not.
        remarks: what is to be told of its end beside that.
    """

    why: str = ""
    remarks: list[str] = []


def compare(result: Result, beside: Collection[Result], called: str, *, may_be_shorter: bool = False) -> ComparedEnd:
    """Compare a finished run with finished runs of the baseline (`beside`, without itself).

    Args:
        called: the metric's name.
        may_be_shorter: an end at an earlier step is told and is no failure.
    """
    remarks, whys = list(result.remarks), []
    known = [one for one in beside if one.failed is not None]
    has = "no run of the baseline has that" if known or not beside else _UNKNOWN
    theirs = {process_ends.kind(words) for one in known for words in (*(one.failed or ()), *one.failed_beside)}
    alike = [words for words in result.failed or () if process_ends.kind(words) in theirs]
    if alike:
        remarks.append(f"{process_ends.in_words(alike)}, as runs of the baseline have it")
    if others := [words for words in result.failed or () if words not in alike]:
        whys.append(f"{process_ends.in_words(others)}, and {has}")
    for kind, sign in result.signs.items():
        words = f"at its end it printed {sign}"
        if any(kind in one.signs for one in beside):
            remarks.append(f"{words}, as runs of the baseline do")
        else:
            whys.append(f"{words}, and {has}")
    if early := _early(result, beside, called):
        words, of_all = early
        (whys if of_all and not may_be_shorter else remarks).append(words)
    return ComparedEnd(why="; ".join(dict.fromkeys(whys)), remarks=list(dict.fromkeys(remarks)))


def of_baseline(result: Result) -> ComparedEnd:
    """Say what is to be told of the end of a run of the baseline, which is compared with none."""
    remarks = list(result.remarks)
    remarks += [process_ends.in_words(result.failed)] if result.failed else []
    remarks += [f"at its end it printed {sign}" for sign in result.signs.values()]
    return ComparedEnd(remarks=remarks)


def _early(result: Result, beside: Collection[Result], called: str) -> tuple[str, bool] | None:
    """Say that a run ended before all runs of the baseline, and whether those end at one place; None if it did not."""
    places = [one.place for one in beside if one.place.keys() == result.place.keys() and one.place]
    order = sorted(places, key=_place)
    if not order or _place(result.place) >= _place(order[0]):
        return None
    ended = f"it ended at {log_end.in_words(result.place, called)}"
    first, last = (log_end.in_words(place, called) for place in (order[0], order[-1]))
    all_epochs = result.place.get("epoch") == order[0].get("epoch") is not None  # larger batches make fewer steps
    if first == last and len(order) == len(beside) >= LEAST and not all_epochs:
        return (
            f"it was not finished: {ended}, and all runs of the baseline at {first} (where a change is to train fewer "
            "steps, write fewer_steps = true under [run] of plumbline.toml)",
            True,
        )
    return f"{ended}, and those of the baseline at {first}{f' to {last}' if last != first else ''}", False


def _place(place: dict[str, float]) -> list[float]:
    return [place[name] for name in sorted(place)]  # the epoch first
