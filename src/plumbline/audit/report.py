"""The audit as a frame, a CSV and a page for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from plumbline.audit.formulas import FORMULAS
from plumbline.audit.rows import COLUMNS, MATCH, MISMATCH, VERDICTS, WITHIN, Ledger
from plumbline.cli import PlumblineError
from plumbline.results import find
from plumbline.results.published import Published
from plumbline.specs.config import ROOT, documents, read_yaml


def build(studies: Sequence[str] = (), root: Path = ROOT) -> pd.DataFrame:
    """Every row of the audit, columns `COLUMNS`: of the named documents, or of every folder with printed numbers.

    A document without rows of its own (no module `audit` of the study) has none.

    Raises:
        PlumblineError: a printed number that a row needs is not there.
    """
    rows = []
    for study in studies or documents(root):
        if not find.has(study, "audit"):
            continue
        explanations = read_explanations(root / "config" / "studies" / study / "explanations.yaml")
        ledger = Ledger(study, Published.of(study, root))
        find.part(study, "audit").audit(ledger)
        for row in ledger.rows:
            why = explanations.get(row.id, "") if row.verdict == MISMATCH else ""
            rows.append({**asdict(row), "explanation": why})
    return pd.DataFrame(rows, columns=COLUMNS)


def read_explanations(path: Path) -> dict[str, str]:
    """One line per mismatch: row id -> text. No file, no explanations.

    Raises:
        PlumblineError: the file is not of that form.
    """
    if not path.is_file():
        return {}
    entries = read_yaml(path)
    if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
        raise PlumblineError(f"{path} must map row ids to one line of text each")
    return entries


def to_csv(frame: pd.DataFrame) -> str:
    """The whole audit; numbers with ten significant digits, so that it is the same text everywhere."""
    return frame.to_csv(index=False, float_format="%.10g", lineterminator="\n")


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows per document and verdict, with totals."""
    table = frame.groupby(["document", "verdict"]).size().unstack(fill_value=0)
    table = table.reindex(columns=[MATCH, WITHIN, MISMATCH], fill_value=0)
    table.loc["all"] = table.sum()
    table["rows"] = table.sum(axis=1)
    return table


def to_markdown(frame: pd.DataFrame) -> str:
    """Summary, meaning of the verdicts, every mismatch with its explanation, and the formulas used."""
    parts = ["# Audit of the printed numbers", ""]
    parts += [
        "Each row recomputes a printed number from other printed numbers, or from a stated configuration.",
        'A printed number stands for everything that rounds to its text: "0.4829" is 0.48285 to 0.48295.',
        "All rows, with inputs, are in `audit.csv` beside this page.",
        "",
        *(f"- **{name}**: {meaning}." for name, meaning in VERDICTS.items()),
        "",
        summary(frame).to_markdown(),
        "",
        "## Mismatches",
        "",
    ]
    found = frame[frame["verdict"] == MISMATCH]
    for document in found["document"].unique():
        shown = found[found["document"] == document]
        table = pd.DataFrame(
            {
                "row": shown["id"],
                "what": shown["what"].map(_cell),
                "where": shown["source"],
                "printed": shown["printed"],
                "recomputed": [
                    _range(value, low, high)
                    for value, low, high in zip(shown["recomputed"], shown["low"], shown["high"], strict=True)
                ],
                "why": shown["explanation"].map(_cell),
            }
        )
        parts += [f"### {document}", "", table.to_markdown(index=False, disable_numparse=True), ""]
    used = frame["formula"].unique()
    legend = pd.DataFrame({"formula": used, "is": [_cell(FORMULAS[name].expression) for name in used]})
    parts += ["## Formulas", "", legend.to_markdown(index=False), ""]
    return "\n".join(parts)


def _cell(text: str) -> str:
    """Text that does not end a cell of a Markdown table."""
    return text.replace("|", "\\|")


def _range(value: float, low: float, high: float) -> str:
    """A recomputed number, with its range where the inputs' rounding leaves one."""
    return f"{value:.6g}" if high - low <= 1e-9 * abs(value) else f"{value:.6g} ({low:.6g} to {high:.6g})"
