"""Reads a decision from the numbers beside its page, for a page that is made again and for a claim."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.stats.after_stopping import GainAfterStopping
from plumbline.stats.sequential import Boundary, Look, SequentialDesign
from plumbline.verdict.decision.outcome import ArmRun, Decision, ExperimentTerms
from plumbline.verdict.outcome import Outcome

#: Key of an earlier version -> the one that it has now.
_NEW_KEYS = {"min_gain": "minimum_gain", "worth": "target_gain_sigmas"}


def read(path: Path) -> Decision:
    """Read a decision.

    Raises:
        PlumblineError: there is none.
    """
    found = read_json(path)
    if not isinstance(found, dict) or "terms" not in found:
        raise PlumblineError(f"{path} is no decision of an experiment; plumbline log lists those that there are")
    try:
        return _decision(found)
    except (KeyError, TypeError, ValueError) as error:
        raise PlumblineError(f"{path} is no decision of an experiment ({error!r}); repeat plumbline try") from None


def _decision(found: Mapping[str, Any]) -> Decision:
    terms = _of(ExperimentTerms, found["terms"])
    terms["design"] = SequentialDesign(**_of(SequentialDesign, terms["design"]))
    for key in ("differs", "together"):
        terms[key] = tuple(terms.get(key, ()))
    edges = found["boundary"]
    keep, discard, df = (tuple(map(_number, edges[side])) for side in ("keep", "discard", "df"))
    past = found["terms"].get("history_words")  # of an earlier version, whose sigma was of past runs too
    rest = _of(Decision, found) | {
        "verdict": Outcome(found["verdict"]),
        "terms": ExperimentTerms(**terms),
        "runs": tuple(ArmRun(**run) for run in found["runs"]),
        "looks": tuple(Look(**_of(Look, look)) for look in found["looks"]),
        "boundary": Boundary(keep, discard, df, edges["error"]),
        "fresh": tuple(ArmRun(**run) for run in found.get("fresh", ())),
        "notes": (*found["notes"], *([past] if past else [])),
    }
    rest |= {key: _estimate(found.get(key)) for key in ("estimate", "estimate_after_stopping")}
    return Decision(**rest)


def _of(kind: type, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of it: an earlier version's decision has more, and other keys."""
    names = {field.name for field in dataclasses.fields(kind)}
    current = {_NEW_KEYS.get(key, key): value for key, value in found.items()}
    return {key: value for key, value in current.items() if key in names}


def _estimate(found: Mapping[str, Any] | None) -> GainAfterStopping | None:
    if found is None:
        return None
    low = -math.inf if found["low"] is None else found["low"]
    high = math.inf if found["high"] is None else found["high"]
    return GainAfterStopping(**{**found, "low": low, "high": high})


def _number(value: float | None) -> float:
    return math.nan if value is None else value
