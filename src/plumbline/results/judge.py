"""Claims in, verdicts out: measure, check, and say which runs spoke."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any

import numpy as np

from plumbline.results.checkers import Measured, check
from plumbline.results.measures import Absent, Measures

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
    "runs",
    "run_ids",
    "preset",
)

#: Presets whose models are too small to speak about methods.
SMALL = ("demo", "smoke")


def judge(claims: list[dict[str, Any]], measures: Measures, evidence: Any) -> list[dict[str, str]]:
    """One row for each claim, in the given order, with COLUMNS."""
    return [_judged(claim, measures, evidence) for claim in claims]


def _judged(claim: dict[str, Any], measures: Measures, evidence: Any) -> dict[str, str]:
    row = {"id": claim["id"], "study": evidence.study.name, "kind": claim["kind"], "text": claim["text"]}
    row |= {"source": str(claim["source"]), "published": _spell(claim["values"]), "reproduced": "nothing"}
    measure = measures.get(claim["id"])
    evidence.used.clear()
    if measure is None or measure.function is None:
        row |= {"verdict": "not tested", "why": measure.untested if measure else "no measure is written for it"}
    else:
        try:
            measured = measure(evidence, claim)
            row["reproduced"] = _shown(measured)
            row["verdict"], row["why"] = check(claim, measured)
            if measure.scope == "training" and evidence.study.preset in SMALL:
                row["why"] = f"{evidence.study.preset} models are too small to speak to it ({row['why']} there)"
                row["verdict"] = "demo"
        except Absent as absent:
            row["reproduced"] = absent.word
            row["verdict"] = "diverged" if absent.word == "diverged" else "not tested"
            row["why"] = str(absent)
            if absent.word == "diverged" and evidence.study.preset in SMALL:
                row["verdict"] = "demo"
    runs = sorted(evidence.used)
    ids = [evidence.frames.runs.loc[key, "run_id"] for key in runs]
    return row | {"runs": " ".join(runs), "run_ids": " ".join(ids), "preset": evidence.study.preset}


def _shown(measured: Measured) -> str:
    values = measured.values | measured.shown
    if measured.holds is not None:
        values = {"holds": measured.holds} | values
    return _spell(values)


def _spell(values: dict[str, Any]) -> str:
    return "; ".join(f"{name} = {_plain(value)}" for name, value in values.items()) or "as stated"


def _plain(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.4g}"
    if isinstance(value, (list, tuple)):
        return " ".join(_plain(item) for item in value) or "none"
    return str(value)


def to_csv(rows: list[dict[str, str]]) -> str:
    """Tidy csv."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def to_markdown(rows: list[dict[str, str]], title: str, preset: str) -> str:
    """Counts of verdicts, then every claim."""
    counts = Counter(row["verdict"] for row in rows)
    lines = [f"# Claims: {title}", "", f"Preset: {preset}", ""]
    lines += [f"- {verdict}: {count}" for verdict, count in counts.most_common()]
    lines += ["", "| claim | says | published | reproduced | verdict | why |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        cells = (row["id"], row["text"], row["published"], row["reproduced"], row["verdict"], row["why"])
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
