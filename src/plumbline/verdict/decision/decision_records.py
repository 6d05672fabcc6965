"""Reads a decision from the numbers next to its page, for a page that is made again and for a claim."""

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
from plumbline.verdict.comparability import every_check
from plumbline.verdict.decision.experiment import ArmRun, Decision, ExperimentTerms
from plumbline.verdict.outcome import Outcome

#: Key of an earlier version -> the one that it has now.
_NEW_KEYS = {"min_gain": "minimum_gain", "worth": "target_gain_sigmas"}


def read(path: Path) -> Decision:
    """Read a decision.

    Raises:
        PlumblineError: there is none.
    """
    record = read_json(path)
    if not isinstance(record, dict) or "terms" not in record:
        raise PlumblineError(f"{path} is no decision of an experiment; plumbline log lists those that there are")
    try:
        return _make_decision(record)
    except (KeyError, TypeError, ValueError) as error:
        raise PlumblineError(f"{path} is no decision of an experiment ({error!r}); repeat plumbline try") from None


def _make_decision(record: Mapping[str, Any]) -> Decision:
    terms = _select_fields(ExperimentTerms, record["terms"])
    terms["design"] = SequentialDesign(**_select_fields(SequentialDesign, terms["design"]))
    for key in ("differs", "together", "equal"):
        terms[key] = tuple(terms.get(key, ()))
    edges = record["boundary"]
    keep, discard, df = (tuple(map(_read_number, edges[side])) for side in ("keep", "discard", "df"))
    past = record["terms"].get("history_words")  # of an earlier version, whose sigma was of past runs too
    rest = _select_fields(Decision, record) | {
        "verdict": Outcome(record["verdict"]),
        "terms": ExperimentTerms(**terms),
        "runs": tuple(ArmRun(**run) for run in record["runs"]),
        "looks": tuple(Look(**_select_fields(Look, look)) for look in record["looks"]),
        "boundary": Boundary(keep, discard, df, edges["error"]),
        "order": tuple(record.get("order", ())),
        "equal_seeds": tuple(record.get("equal_seeds", ())),
        "fresh": tuple(ArmRun(**run) for run in record.get("fresh", ())),
        "comparability": every_check.answers_from_json(record.get("comparability", {})),
        "notes": (*record["notes"], *([past] if past else [])),
    }
    rest |= {key: _read_estimate(record.get(key)) for key in ("estimate", "estimate_after_stopping")}
    return Decision(**rest)


def _select_fields(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of it: an earlier version's decision has more, and other keys."""
    names = {field.name for field in dataclasses.fields(kind)}
    current = {_NEW_KEYS.get(key, key): value for key, value in record.items()}
    return {key: value for key, value in current.items() if key in names}


def _read_estimate(record: Mapping[str, Any] | None) -> GainAfterStopping | None:
    if record is None:
        return None
    low = -math.inf if record["low"] is None else record["low"]
    high = math.inf if record["high"] is None else record["high"]
    return GainAfterStopping(**{**record, "low": low, "high": high})


def _read_number(value: float | None) -> float:
    return math.nan if value is None else value
