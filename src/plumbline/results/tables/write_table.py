"""Writes a table's four files: tidy csv, md, tex, and where each cell comes from. Each is whole or absent."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
from tabulate import LATEX_ESCAPE_RULES, tabulate

from plumbline.audit.printed_numbers import NOT_PRINTED
from plumbline.core import fingerprint_file
from plumbline.core.files import atomic_write_json, atomic_write_text
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.provenance import goes_on, headings, provenance
from plumbline.results.tables.table import Cell, Column, Table
from plumbline.specs.paper import named

#: The csv's last column: why numbers of a row are not there, or which bounds they stand for.
MISSING_REASONS = "missing_reasons"

#: Signs that TeX's text fonts lack.
SIGNS = {"Δ": r"$\Delta$", "σ": r"$\sigma$", "−": "$-$", "√": r"$\surd$", "ρ": r"$\rho$", "±": r"$\pm$"}
SIGNS |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\to$", "≤": r"$\le$", "×": r"$\times$", "²": "$^2$"}


def write(table: Table, frames: RunFrames, out: str | Path, fingerprint: str = "") -> list[Path]:
    """Write a table as `out` (csv) and, beside it, as md and tex, with its provenance.json; returns the paths.

    `fingerprint`: the table's fingerprint, which the provenance repeats.
    """
    out = Path(out)
    paths = [out, out.with_suffix(".md"), out.with_suffix(".tex"), out.with_suffix(".provenance.json")]
    text = to_csv(table)
    atomic_write_text(paths[1], to_markdown(table))
    atomic_write_text(paths[2], to_tex(table))
    atomic_write_json(paths[3], provenance(table, frames, text) | {fingerprint_file.KEY: fingerprint})
    atomic_write_text(out, text)
    return paths


def to_csv(table: Table) -> str:
    """Write all columns of a table as csv, with a last column that says why a number is missing.

    Numbers are in full precision or as printed, empty where there is none.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    numeric = any(column.numeric for column in table.columns)
    writer.writerow([column.name for column in table.columns] + [MISSING_REASONS] * numeric)
    for row in table.rows:
        cells = [_csv_cell(row[column.name]) for column in table.columns]
        writer.writerow(cells + [missing_reasons(table, row)] * numeric)
    return stream.getvalue()


def _csv_cell(cell: Cell) -> str:
    if cell.text or cell.value is None:
        return cell.text
    return repr(float(cell.value)) if isinstance(cell.value, float) else str(cell.value)


def missing_reasons(table: Table, row: dict[str, Cell]) -> str:
    """Say why numbers of a row are missing, as ``word: column column; word: column``.

    An empty printed number without a word here is one that is not printed.
    """
    words: dict[str, list[str]] = {}
    for column in table.columns:
        word = table.word(row, column)
        if word and word != NOT_PRINTED:
            words.setdefault(word, []).append(column.name)
    return "; ".join(f"{word}: {' '.join(names)}" for word, names in words.items())


def to_markdown(table: Table) -> str:
    """Write the readable columns as a Markdown table, its warnings above and its notes below."""
    shown = [column for column in table.columns if column.readable]
    heads = headings(table.columns)
    text = markdown(
        _texts(table, shown),
        [heads[column.name] for column in shown],
        ["left" if column.kind == "label" or not column.numeric else "right" for column in shown],
    )
    above = table.warnings or [f"Preset: {table.preset}"]
    head = [f"# {table.title}", named(table.study, table.paper)]
    return "\n\n".join([*head, *above, text, "\n".join(f"- {note}" for note in table.notes)]) + "\n"


def _texts(table: Table, shown: list[Column]) -> list[list[str]]:
    """The rows as people read them, in the order in which they are: what is said once is not said again."""
    values = [{name: cell.value for name, cell in row.items()} for row in table.rows]
    again = goes_on([column.name for column in table.columns if column.once], values)
    return [
        ["" if repeats and column.once else table.shown(row, column) for column in shown]
        for row, repeats in zip(table.rows, again, strict=True)
    ]


def markdown(rows: list[list[str]], header: list[str], align: list[str]) -> str:
    """Write a Markdown table of texts; `align`: ``left`` or ``right`` for each column."""
    escaped = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return tabulate(escaped, header, tablefmt="pipe", colalign=align if rows else None, disable_numparse=True)


def tex(text: str) -> str:
    """Write a text for TeX, with its special characters and missing signs written out."""
    rules = LATEX_ESCAPE_RULES | SIGNS
    return "".join(rules.get(character, character) for character in text.replace("^2", "²"))


def to_tex(table: Table) -> str:
    """Write the readable columns as a booktabs table; the caption carries title, warnings and notes."""
    shown = [column for column in table.columns if column.readable]
    heads = headings(table.columns)
    frame = pd.DataFrame(_texts(table, shown), dtype=object)
    style = frame.reindex(columns=range(len(shown))).style.format(tex).hide(axis="index")
    style = style.format_index(lambda position: tex(heads[shown[position].name]), axis="columns")
    align = "".join("r" if column.numeric else "l" for column in shown)
    study = named(table.study, table.paper).replace("`", "")
    caption = " ".join([table.title, study, *(table.warnings or [f"Preset: {table.preset}."]), *table.notes])
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage{graphicx}",
        r"\begin{table}",
        r"\centering",
        r"\resizebox{\linewidth}{!}{%",
        style.to_latex(hrules=True, column_format=align).strip() + "}",
        rf"\caption{{{tex(caption)}}}",
        rf"\label{{tab:{table.study}-{table.name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
