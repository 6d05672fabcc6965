"""Writes a table's files: tidy csv, md, three for TeX, and where each cell comes from. Each is whole or absent."""

from __future__ import annotations

from pathlib import Path

from tabulate import tabulate

from plumbline.core import fingerprint_file
from plumbline.core.csv_text import write_rows
from plumbline.core.files import atomic_write_text, sha256_file
from plumbline.published.printed_numbers import NOT_PRINTED
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.provenance import collect_provenance
from plumbline.results.tables.shown_table import (
    ShownCell,
    arrange_columns,
    choose_columns,
    place_texts,
    without_repeats,
)
from plumbline.results.tables.table import Cell, Table
from plumbline.results.tables.tex_table import to_tex, to_tex_all, to_tex_notes
from plumbline.specs.paper import name_study

#: The csv's last column: why numbers of a row are not there, or which bounds they stand for.
MISSING_REASONS = "missing_reasons"

#: The ending of the file that records where each number comes from.
PROVENANCE = ".provenance.json"


def write(table: Table, frames: RunFrames, out: str | Path, fingerprint: str = "") -> list[Path]:
    """Write a table as `out` (csv) and its other files next to it; return the paths.

    `fingerprint`: the table's fingerprint, which the provenance repeats.
    """
    out = Path(out)
    text = to_csv(table)
    for ending, write_as in AS_TEXT.items():
        atomic_write_text(out.with_suffix(ending), write_as(table))
    record = collect_provenance(table, frames, text) | {fingerprint_file.KEY: fingerprint}
    other_digests = {path.name: sha256_file(path) for path in map(out.with_suffix, AS_TEXT)}
    record[fingerprint_file.FILES] = {out.name: record["csv_sha256"]} | other_digests
    fingerprint_file.write_facts(out.with_suffix(PROVENANCE), record)
    atomic_write_text(out, text)
    return [out, *(out.with_suffix(ending) for ending in (*AS_TEXT, PROVENANCE))]


def to_csv(table: Table) -> str:
    """Write all columns of a table as csv, with a last column that states why a number is missing.

    Numbers are in full precision or as printed, empty if there is none.
    """
    numeric = any(column.numeric for column in table.columns)
    rows = [[column.name for column in table.columns] + [MISSING_REASONS] * numeric]
    for row in table.rows:
        cells = [_format_csv_cell(row[column.name]) for column in table.columns]
        rows.append(cells + [write_missing_reasons(table, row)] * numeric)
    return write_rows(rows)


def _format_csv_cell(cell: Cell) -> str:
    if cell.text or cell.value is None:
        return cell.text
    return repr(float(cell.value)) if isinstance(cell.value, float) else str(cell.value)


def write_missing_reasons(table: Table, row: dict[str, Cell]) -> str:
    """Write why numbers of a row are missing, as ``word: column column; word: column``.

    An empty printed number without a word here is one that is not printed.
    """
    columns_by_reason: dict[str, list[str]] = {}
    for column in table.columns:
        reason = table.word(row, column)
        if reason and reason != NOT_PRINTED:
            columns_by_reason.setdefault(reason, []).append(column.name)
    return "; ".join(f"{reason}: {' '.join(names)}" for reason, names in columns_by_reason.items())


def to_markdown(table: Table) -> str:
    """Write about ten columns as a Markdown table, the paper's first, six lines above it and its notes below; the last
    note names the file with the others."""
    columns = choose_columns(arrange_columns(table), lambda _: 0.0, 1.0)
    above, below = place_texts(table, columns, heading=True)
    displayed = without_repeats(columns)
    text = markdown_table(
        [
            [_write_markdown_cell(cell) for cell in row]
            for row in zip(*(column.cells for column in displayed), strict=True)
        ],
        [column.heading for column in columns],
        ["right" if column.numeric else "left" for column in columns],
    )
    notes = [f"- {_link_provenance(table, note)}" for note in [name_study(table.study, table.paper), *below]]
    if left_out := len(table.columns) - len({name for column in columns for name in column.names}):
        notes.append(f"- [{table.name}.csv]({table.name}.csv) has {left_out} more columns.")
    head, *warnings = above
    return (
        "\n\n".join([f"# {head}", *(_link_provenance(table, line) for line in warnings), text, "\n".join(notes)]) + "\n"
    )


def _write_markdown_cell(cell: ShownCell) -> str:
    lines = cell.lines
    return "<br>".join([*lines[:1], *(f"**{line}**" if cell.bold else line for line in lines[1:])])


def _link_provenance(table: Table, text: str) -> str:
    """Return a text in which the name of the table's provenance file is a link."""
    file = f"{table.name}{PROVENANCE}"
    return text.replace(file, f"[{file}]({file})")


def markdown_table(rows: list[list[str]], header: list[str], align: list[str]) -> str:
    """Write a Markdown table of texts; `align`: ``left`` or ``right`` for each column."""
    head, *escaped = [[cell.replace("|", r"\|") for cell in row] for row in (header, *rows)]
    return tabulate(escaped, head, tablefmt="pipe", colalign=align if rows else None, disable_numparse=True)


#: What is written of a table as text beside its csv, by the file's ending.
AS_TEXT = {".md": to_markdown, ".tex": to_tex, ".all.tex": to_tex_all, ".notes.tex": to_tex_notes}
