"""The audit as a frame, a CSV and a page for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

import pandas as pd

from plumbline.audit.formulas import FORMULAS
from plumbline.audit.rows import COLUMNS, MATCH, MISMATCH, VERDICTS, WITHIN, Ledger
from plumbline.cli import PlumblineError, nearest
from plumbline.results import find
from plumbline.results.published import Published
from plumbline.specs.config import ROOT, documents, read_yaml


def choose(studies: Sequence[str] = (), root: Path = ROOT) -> list[str]:
    """The named documents, or all: every folder of `config/studies` with printed numbers, in alphabetical order.

    Raises:
        PlumblineError: a study has no printed numbers, or none has any.
    """
    known = documents(root)
    if not known:
        raise PlumblineError(f"no published numbers in {root / 'config' / 'studies'}: no folder has a folder published")
    for study in studies:
        if study not in known:
            raise PlumblineError(
                f"--study {study}: no printed numbers are there{nearest(study, known)} (known: {known})"
            )
    return list(dict.fromkeys(studies)) or known


def build(studies: Sequence[str] = (), root: Path = ROOT) -> pd.DataFrame:
    """Every row of the audit, columns `COLUMNS`: of the named documents, or of every folder with printed numbers.

    A document whose study has no module `audit` has no rows.

    Raises:
        PlumblineError: a printed number that a row needs is not there.
    """
    rows = []
    for study in choose(studies, root):
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


def summary(frame: pd.DataFrame, studies: Sequence[str]) -> pd.DataFrame:
    """Rows per document and verdict, with totals; a document without rows is there too."""
    table = pd.crosstab(frame["document"], frame["verdict"])
    table = table.reindex(index=list(studies), columns=[MATCH, WITHIN, MISMATCH], fill_value=0)
    table.index.name = "document"
    table.loc["all"] = table.sum()
    table["rows"] = table.sum(axis=1)
    return table


def to_markdown(frame: pd.DataFrame, studies: Sequence[str]) -> str:
    """Summary, meaning of the verdicts, every mismatch with its explanation, and the formulas used."""
    parts = ["# Audit of the printed numbers", ""]
    parts += [
        "Each row recomputes a printed number from other printed numbers, or from a stated configuration.",
        'A printed number stands for everything that rounds to its text: "0.4829" is 0.48285 to 0.48295.',
        "Nothing was trained for this page: it is the same at every preset.",
        "All rows, with inputs, are in the CSV beside it.",
        "",
        *(f"- **{name}**: {meaning}." for name, meaning in VERDICTS.items()),
        "",
        summary(frame, studies).to_markdown(),
        "",
    ]
    unchecked = [study for study in studies if not (frame["document"] == study).any()]
    parts += [
        f"`{study}`: no checks written (they would stand in `plumbline.studies.{study}.audit`).\n"
        for study in unchecked
    ]
    found = frame[frame["verdict"] == MISMATCH]
    parts += ["## Mismatches", ""] if len(found) else []
    for document in found["document"].unique():
        shown = found[found["document"] == document]
        parts += [f"### {document}", "", _mismatches(shown).to_markdown(index=False, disable_numparse=True), ""]
    used = frame["formula"].unique()
    legend = pd.DataFrame({"formula": used, "is": [_cell(FORMULAS[name].expression) for name in used]})
    parts += ["## Formulas", "", legend.to_markdown(index=False, disable_numparse=True), ""] if len(used) else []
    return "\n".join(parts)


def _mismatches(shown: pd.DataFrame) -> pd.DataFrame:
    """Mismatches as people read them: what is printed and where, beside what it comes to."""
    return pd.DataFrame(
        {
            "row": shown["id"],
            "number": (shown["what"] + " (" + shown["source"] + ")").map(_cell),
            "printed": shown["printed"],
            "recomputed": [
                _range(*row)
                for row in zip(shown["printed"], shown["recomputed"], shown["low"], shown["high"], strict=True)
            ],
            "why": shown["explanation"].map(_cell),
        }
    )


def _cell(text: str) -> str:
    """Text that does not end a cell of a Markdown table."""
    return text.replace("|", "\\|")


def _range(printed: str, value: float, low: float, high: float) -> str:
    """A recomputed number, one digit longer than the printed one, with its range where rounding leaves one."""
    digits = max(4, len(Decimal(printed.removeprefix("< ")).as_tuple().digits) + 1)
    alone = f"{value:.{digits}g}"
    return alone if high - low <= 1e-9 * abs(value) else f"{alone} ({low:.{digits}g} to {high:.{digits}g})"
