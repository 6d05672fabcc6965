"""Reads a finished table back from its csv and the provenance next to it, as the value that it was written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.csv_text import read_rows
from plumbline.results.tables import provenance
from plumbline.results.tables.number_formats import AS_PRINTED
from plumbline.results.tables.table import Cell, Column, PaperCell, PaperColumn, Table


def read_table(path: Path) -> Table:
    """Read a table: columns, cells with their runs and reasons, warnings and notes.

    Raises:
        PlumblineError: there is no such table, no provenance next to it, or one of another state of it.
    """
    content = provenance.read(path)
    with open(path, encoding="utf-8", newline="") as handle:
        rows = list(read_rows(handle))
    columns = [
        Column(
            name=entry["name"],
            header=entry["header"],
            kind=entry["kind"],
            format=entry["format"],
            readable=entry["shown_in_markdown"],
            narrow=entry["shown_in_terminal"],
            paper=entry.get("shown_in_tex", False),  # a table that was made by an earlier version does not state these
            noise=entry.get("sd_column", ""),
            once=entry.get("hide_repeats", False),
        )
        for entry in content["columns"]
    ]
    return Table(
        name=content["table"],
        title=content["title"],
        study=content["study"],
        preset=content["preset"],
        key=content["key"],
        columns=columns,
        rows=[{column.name: _read_cell(row, column, content) for column in columns} for row in rows],
        notes=content["notes"],
        warnings=content["warnings"],
        published=content["published"],
        paper=content.get("paper", ""),
        interpretations=content["interpretations"],
        others=content["runs_of_other_specs"],
        paper_columns=[
            PaperColumn(
                heading=entry["heading"],
                numeric=entry["numeric"],
                names=tuple(entry["names"]),
                cells={key: PaperCell(*cell) for key, cell in entry["cells"].items()},
            )
            for entry in content.get("paper_columns", [])
        ],
        transposed=content.get("transposed", False),
    )


def _read_cell(row: dict[str, str], column: Column, content: dict[str, Any]) -> Cell:
    text, key = row[column.name], row[content["key"]]
    runs = tuple(content["cells"].get(key, {}).get(column.name, ()))
    source = content["sources"].get(key, {}).get(column.name, "")
    if not column.numeric:
        return Cell(text, runs, source)
    if not text:
        return Cell(None, runs, source, word=content["why_empty"].get(key, {}).get(column.name, ""))
    value = int(text) if text.lstrip("-").isdigit() else float(text)
    return Cell(value, runs, source, text=text if column.format == AS_PRINTED else "")
