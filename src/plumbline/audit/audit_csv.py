"""Collects the audit as rows and a CSV: every row with its class and finding, and what no row reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tabulate import tabulate

from plumbline.audit.audit_rows import COLUMNS, VERDICTS, AuditRow, AuditRows
from plumbline.audit.coverage import AuditCoverage, measure_coverage, read_unchecked
from plumbline.audit.findings import Finding, read_findings
from plumbline.audit.sentences import SentenceOfAudit, list_text_numbers, read_sentences
from plumbline.core.csv_text import write_rows
from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.specs import study_folders, study_parts
from plumbline.specs.yaml_files import ROOT, papers

#: A row of the audit with its class and its finding: column of `COLUMNS` -> value.
Row: TypeAlias = dict[str, Any]

#: Paper -> what is counted -> how many rows.
Counts: TypeAlias = dict[str, dict[str, int]]


def choose_studies(studies: Sequence[str] = (), root: Path = ROOT) -> list[str]:
    """Choose the named studies, or all: every study with printed numbers, in alphabetical order.

    Raises:
        PlumblineError: a study has no printed numbers, or none has any.
    """
    names = papers(root)
    if not names:
        raise PlumblineError(f"no published numbers in {root / study_folders.STUDIES}: no study has a folder published")
    for study in studies:
        if study not in names:
            raise PlumblineError(
                f"--study {study}: no printed numbers are there{nearest(study, names)} (known: {names})"
            )
    return list(dict.fromkeys(studies)) or names


def ledger(study: str, root: Path = ROOT) -> AuditRows:
    """Compute the audit's rows of one study; none if the study has no module `audit`.

    Raises:
        PlumblineError: a printed number that a row needs is not there, or a row of a range refuses nothing.
    """
    rows = AuditRows(study, PrintedNumbers.of(study, root))
    if study_parts.has(study, "audit", root):
        study_parts.part(study, "audit", root).audit(rows)
    for row in rows.cannot_fail:
        raise PlumblineError(
            f"{study}: the audit row {row.id!r} holds from {row.recomputed_low:.4g} to {row.recomputed_high:.4g}"
            f"{f', and for {row.refuses}' if row.refuses else ''}; give `refuses`, what a slip could print and the row "
            "does not hold for, or leave it out"
        )
    return rows


def findings(study: str, root: Path = ROOT) -> list[Finding]:
    """Read the findings of one study's paper, the most consequential first."""
    return read_findings(_make_path(study, "findings", root))


def read_coverage(study: str, root: Path = ROOT, audit_rows: AuditRows | None = None) -> AuditCoverage:
    """Find which printed numbers of one paper a row reads, which are listed with a reason, and which are neither.

    Args:
        audit_rows: the paper's rows, where they are computed already.
    """
    entries = read_unchecked(_make_path(study, "unchecked_numbers", root))
    return measure_coverage(PrintedNumbers.of(study, root), (audit_rows or ledger(study, root)).read, entries)


def sentences(study: str, root: Path = ROOT, audit_rows: AuditRows | None = None) -> list[SentenceOfAudit]:
    """Read the sentences with a number of one study's paper; none if the study lists none.

    Args:
        audit_rows: the paper's rows, where they are computed already.

    Raises:
        PlumblineError: an entry names a number that enters no row, that the sentence does not print, or that is
            printed elsewhere.
    """
    path = _make_path(study, "sentences", root)
    entries = read_sentences(path)
    if not entries:
        return []
    read_cells = (audit_rows or ledger(study, root)).read
    numbers = list_text_numbers(PrintedNumbers.of(study, root), read_cells)
    for sentence in entries:
        for name in sentence.read:
            number = numbers.get(name)
            if number is None:
                fault = f"no row of the audit reads a number {name!r} of the text{nearest(name, sorted(numbers))}"
            elif not sentence.prints(number.text):
                fault = f"{name!r} is printed {number.text}, which is none of {sentence.numbers}; take it out"
            elif not number.stands_in(sentence.section):
                fault = (
                    f"{name!r} is printed in {number.source}; if it is this number and no equal one, add "
                    f"{sentence.section} to its source"
                )
            else:
                continue
            raise PlumblineError(f"{path}: {sentence.at}: {fault}")
    return entries


def build(studies: Sequence[str] = (), root: Path = ROOT, computed: Mapping[str, AuditRows] | None = None) -> list[Row]:
    """Build every row of the audit: of the named studies, or of every folder with printed numbers.

    Args:
        computed: the rows of each of these studies, where they are computed already.

    Raises:
        PlumblineError: a printed number that a row needs is not there, or a finding names a row that is not.
    """
    rows = []
    for study in choose_studies(studies, root):
        audit_rows = (computed[study] if computed else ledger(study, root)).rows
        finding_of_row = {row: finding for finding in findings(study, root) for row in finding.rows}
        ids = [row.id for row in audit_rows]
        for name in finding_of_row:
            if name not in ids:
                path = _make_path(study, "findings", root)
                raise PlumblineError(f"{path}: the audit has no row {name!r}{nearest(name, ids)}")
        for row in audit_rows:
            rows.append(make_row(row, finding_of_row.get(row.id)))
    return rows


def make_row(row: AuditRow, finding: Finding | None) -> Row:
    """A row of the audit's table: what the audit has of it, and the finding that explains it."""
    values = {name: getattr(row, name, "") for name in COLUMNS} | {"evidence_kind": row.kind}
    return values | ({"finding": finding.id, "explanation": finding.text} if finding else {})


def to_csv(rows: Sequence[Row]) -> str:
    """Write the audit as the text of a CSV; ten significant digits make it the same text on every machine."""
    cells = ([row.get(name, "") for name in COLUMNS] for row in rows)
    return write_rows(
        [COLUMNS, *([f"{cell:.10g}" if isinstance(cell, float) else cell for cell in row] for row in cells)]
    )


def summary(rows: Sequence[Row], studies: Sequence[str]) -> Counts:
    """Count rows per paper and verdict, with totals; a paper without rows is listed too."""
    table = counts(rows, studies, "verdict", list(VERDICTS))
    table["all"] = {verdict: sum(of[verdict] for of in table.values()) for verdict in VERDICTS}
    return {study: of | {"rows": sum(of.values())} for study, of in table.items()}


def counts(rows: Sequence[Row], studies: Sequence[str], column: str, values: Sequence[str]) -> Counts:
    """Count rows per paper and value of a column."""
    return {
        study: {value: sum(row["study"] == study and row[column] == value for row in rows) for value in values}
        for study in studies
    }


def as_markdown(table: Counts) -> str:
    """Write counts per paper as a table of Markdown."""
    heads = next(iter(table.values()))
    return tabulate([[study, *of.values()] for study, of in table.items()], ["study", *heads], "pipe")


def _make_path(study: str, name: str, root: Path) -> Path:
    return study_folders.folder(study, root) / f"{name}.yaml"
