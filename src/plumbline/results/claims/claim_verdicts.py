"""Measures and checks each claim of a paper, and gives its verdict with the runs that it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from plumbline.core.csv_text import write_rows
from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims import replication_rates
from plumbline.results.claims.claim_checkers import ComputedValues, check, describe_nearness
from plumbline.results.claims.claim_registry import ClaimChecks, ClaimEvidence, MissingRun
from plumbline.results.claims.replication_rates import StudyRates
from plumbline.results.tables.table import OTHER_TEXTS_NOTE
from plumbline.results.tables.write_table import markdown_table
from plumbline.specs.paper import name_study
from plumbline.specs.study_config import Study
from plumbline.specs.study_folders import RATES

COLUMNS = (
    "id",
    "study",
    "kind",
    "text",
    "source",
    "published",
    "reproduced",
    "verdict",
    "why",
    "nearness",
    *replication_rates.COLUMNS,
    "runs",
    "run_ids",
    "preset",
)

#: The one preset whose models are the paper's. At the others a claim about trained models is not judged.
VERDICTS = "paper"
#: What the page calls the rates.
RATE_HEADS = (
    "reproduced if the paper is right",
    "partly if it is right",
    "reproduced if nothing differs",
    "partly if nothing differs",
)
#: The verdict where the models are of the paper's size, and were trained on other texts.
OTHER_TEXTS = "not judged (other texts)"


def judge_claims(
    claims: list[PaperClaim], checks: ClaimChecks, evidence: ClaimEvidence, rates: StudyRates | None = None
) -> list[dict[str, str]]:
    """Judge every claim of a paper; one row for each, in the given order, with COLUMNS.

    `rates`: how often each would be reproduced; None if that was not simulated.

    Raises:
        PlumblineError: a check is registered for a claim that the paper does not make, or a rate stands for one.
    """
    ids = {claim.id for claim in claims}
    unknown = sorted(set(checks) - ids)
    if unknown:
        path = evidence.published.directory / "claims.yaml"
        raise PlumblineError(f"{path}: there is no claim {unknown[0]!r} to check{nearest(unknown[0], ids)}")
    rates = rates or replication_rates.NONE
    for name in (*rates.claims, *rates.not_drawn, *rates.null_agrees):
        if name not in ids:
            raise PlumblineError(
                f"{RATES} of {evidence.study.code}: there is no claim {name!r}{nearest(name, ids)}; draw the rates "
                "again"
            )
    rows = [_judge_claim(claim, checks, evidence) | rates.columns(claim.id) for claim in claims]
    return [{name: row[name] for name in COLUMNS} for row in rows]


def _judge_claim(claim: PaperClaim, checks: ClaimChecks, evidence: ClaimEvidence) -> dict[str, str]:
    preset, other_texts = evidence.study.preset, evidence.study.other_texts
    row = {"id": claim.id, "study": evidence.study.name, "kind": claim.kind, "text": claim.text}
    row |= {"source": claim.source, "published": _format_values(claim.values), "reproduced": "nothing"}
    registered = checks.get(claim.id)
    evidence.used.clear()
    if registered is None or registered.function is None:
        row |= {"verdict": "not tested", "why": registered.untested if registered else "no check is written for it"}
    else:
        try:
            computed = registered(evidence, claim)
            row["reproduced"] = _format_computed(computed)
            row["verdict"], row["why"] = check(claim, computed, registered.compare, registered.effect)
            row["nearness"] = describe_nearness(claim, computed, registered.compare)
            if registered.scope == "training" and preset != VERDICTS:
                row["why"] = f"{preset} models are too small to speak to it ({row['why']} there)"
                row["verdict"] = f"not judged ({preset} size)"
            elif registered.scope == "training" and other_texts:
                row["why"] = f"models of texts from {other_texts}, not of the paper's, cannot ({row['why']} there)"
                row["verdict"] = OTHER_TEXTS
        except MissingRun as absent:
            row["reproduced"] = absent.word
            row["verdict"] = "diverged" if absent.word == "diverged" else "not tested"
            row["why"] = str(absent)
            if absent.word == "diverged" and preset != VERDICTS:
                row["verdict"] = f"not judged ({preset} size)"
            elif absent.word == "diverged" and other_texts:
                row["verdict"] = OTHER_TEXTS
    row.setdefault("nearness", "")
    runs = sorted(evidence.used)
    ids = [evidence.frames.identity(key) for key in runs]
    return row | {"runs": " ".join(runs), "run_ids": " ".join(ids), "preset": evidence.study.preset_named}


def _format_computed(computed: ComputedValues) -> str:
    values = computed.values | computed.shown
    if computed.holds is not None:
        values = {"holds": computed.holds} | values
    return _format_values(values)


def _format_values(values: dict[str, Any]) -> str:
    return "; ".join(f"{name} = {_format_value(value)}" for name, value in values.items()) or "as stated"


def _format_value(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        # What was never reached is infinitely far; what could not be measured is not a number at all.
        return "no value" if math.isnan(value) else f"{float(value):.4g}".replace("inf", "infinite")
    if isinstance(value, (list, tuple)):
        return " ".join(_format_value(item) for item in value) or "none"
    return str(value)


def _has_rates(row: dict[str, str]) -> bool:
    return bool(row[replication_rates.COLUMNS[0]])


def to_csv(rows: list[dict[str, str]]) -> str:
    """Write the rows of claims as tidy csv."""
    return write_rows([COLUMNS, *([row[name] for name in COLUMNS] for row in rows)])


def to_markdown(rows: list[dict[str, str]], title: str, study: Study, notes: Sequence[str] = ()) -> str:
    """Write a page of claims: counts of verdicts, then every claim, then what is to be known of the runs."""
    counts = Counter(row["verdict"] for row in rows)
    lines = [f"# Claims: {title}", "", name_study(study.name, study.paper), "", f"Preset: {study.preset}", ""]
    lines += [OTHER_TEXTS_NOTE.format(study.other_texts), ""] if study.other_texts else []
    lines += [f"- {verdict}: {count}" for verdict, count in counts.most_common()]
    heads = {"id": "claim", "text": "text", "published": "published", "reproduced": "reproduced"}
    heads |= {"verdict": "verdict", "why": "why", "nearness": "how near"}
    heads |= dict(zip(replication_rates.COLUMNS, RATE_HEADS, strict=True)) if any(map(_has_rates, rows)) else {}
    table = markdown_table([[row[name] for name in heads] for row in rows], list(heads.values()), ["left"] * len(heads))
    return "\n".join([*lines, "", table, *([""] if notes else []), *(f"- {note}" for note in notes)]) + "\n"
