"""Explains why the seed of a folder's trainer has no effect, by what its runs printed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from plumbline.core.errors import PlumblineError
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer import first_values
from plumbline.verdict.own_trainer.requests import Result
from plumbline.verdict.own_trainer.trainer_file import INJECT

#: Where the metric is printed with so many digits, two equal values of different seeds are no accident; where with
#: fewer, as the accuracy of a few hundred examples is, so many are none.
_DIGITS, _EQUAL = 5, 5
_BY_HAND = "let the trainer take its seed from the command line or the environment"


class SeedWithoutEffectError(PlumblineError):
    """The trainer's seed has no effect, so that its runs are no draws of which a spread could be known."""

    exit_code = Outcome.CANNOT_BE_JUDGED.exit_code


def explain_no_effect(way: str, result: Result, results: Mapping[int, Result]) -> str:
    """State that the seed has no effect on an arm, by what is known of its runs; empty where it may have one.

    Args:
        way: how the trainer is given its seed (`run.seed` of `plumbline.toml`).
        result: of the run that ended last, and has a value.
        results: of all finished runs of the arm by their seeds, this one among them.
    """
    if way == INJECT and not result.shifted and (result.left_alone or not result.seeded):
        others = ", ".join(result.left_alone)
        reason = "no Python of it could be reached (write PYTHONPATH=src:$PYTHONPATH where the command sets it)"
        reason = f"{others} is left alone" if others else reason
        return f"run.seed: 'inject' has no effect: no call that sets a seed was seen, and {reason}; {_BY_HAND}"
    texts = {other.text for other in results.values()}
    digits = len(re.sub(r"\D|[eE].*", "", result.text).strip("0"))
    same_first = first_values.are_one_run(*(other.printed_first for other in results.values()))
    if not same_first and (len(texts) > 1 or len(results) < (2 if digits >= _DIGITS else _EQUAL)):
        return ""
    seeds = ", ".join(map(str, sorted(results)))
    first = ", ".join(result.printed_first or ())
    gave = f"all gave {result.text}" if len(texts) == 1 else f"all printed {first} first"
    none = not any(other.shifted for other in results.values())
    if way == INJECT:
        calls = "no call that sets a seed was seen" if none else f"calls were shifted ({', '.join(result.shifted)})"
        remedy = f"{calls}; {_BY_HAND}"
    else:
        remedy = 'the trainer ignores its seed; where it fixes one in the code, write seed = "inject"'
    return f"run.seed: {way!r} has no effect: seeds {seeds} {gave}; {remedy}"
