"""Compares how a run ended with how the baseline's runs did: what those do as well is no failure of this one."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from plumbline.verdict.own_trainer import log_end, process_ends
from plumbline.verdict.own_trainer.requests import Result

#: Runs of the baseline that must end at one place before an earlier end is a failure: one alone says nothing.
LEAST = 2
#: Runs that take as long as the baseline's, up to this part of that, have a budget of time: of runs of fewer seconds
#: than that the start is too large a part to say so.
_AS_LONG, _SECONDS = 0.03, 10.0
#: The part of the way, at most, of which one line may be missing at the end, as where steps are counted from 0 or time
#: is up; and the part of an epoch, as of 3 epochs of which the last batches are left out (2.98).
_PART_OF_WAY, _PART_OF_EPOCH = 0.25, 0.5
#: How `process_ends` ends the words of a process that another one ended.
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
    """Say that a run ended before all runs of the baseline, and whether that is sure; None if it did not.

    The epoch counts before the step, as larger batches make fewer steps. An end is sure where the baseline's runs end
    at one place, which the run cannot have reached behind the last of its own lines.
    """
    ended = f"it ended at {log_end.in_words(result.place, called)}"
    sure = len(beside) >= LEAST and not _took_as_long(result, beside)
    named = [other for other in beside if other.place.keys() & result.place.keys()]
    if not named and result.place and any(other.place for other in beside):
        other = next(other for other in beside if other.place)
        return f"{ended}, and those of the baseline at {log_end.in_words(other.place, called)}", False
    for name in ("epoch", "step", "values"):
        theirs = sorted((other for other in named if name in other.place), key=lambda other: other.place[name])
        if name not in result.place or not theirs:
            continue
        first, last = theirs[0], theirs[-1]
        missing = first.place[name] - result.place[name]
        if missing <= 0:
            sure = sure and name != "epoch"
            continue
        interval = max(result.interval.get(name, 0.0), _PART_OF_EPOCH if name == "epoch" else 0.0)
        within = missing < interval or missing == interval <= _PART_OF_WAY * first.place[name]
        at_one_place = first.place[name] == last.place[name] and len(theirs) == len(beside)
        of_first, of_last = (log_end.in_words(other.place, called) for other in (first, last))
        if sure and at_one_place and name != "values" and not within:
            remedy = "where a change is to train fewer steps, write fewer_steps = true under [run] of plumbline.toml"
            return f"it was not finished: {ended}, and all runs of the baseline at {of_first} ({remedy})", True
        until = f" to {of_last}" if of_last != of_first else ""
        return f"{ended}, and those of the baseline at {of_first}{until}", False
    return None


def _took_as_long(result: Result, beside: Collection[Result]) -> bool:
    """Whether a run took the time that the baseline's runs did, as those with a budget of time do."""
    seconds = [other.seconds for other in beside]
    shortest, longest = (1 - _AS_LONG) * min(seconds), (1 + _AS_LONG) * max(seconds)
    return min(seconds) >= _SECONDS and shortest <= result.seconds <= longest
