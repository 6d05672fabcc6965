"""Reads a study's table for a page from its csv and provenance, with reproduced numbers next to printed ones."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.report import agreement_with_print
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, RunLinks, split_badges
from plumbline.results.tables import provenance
from plumbline.results.tables.number_formats import AS_PRINTED, format_number
from plumbline.specs.corpus import DOCUMENTS

#: Words in a cell from which on its column is one of sentences.
WIDE = 36


def read_table(path: Path, sources: RunLinks, files: dict[str, str]) -> PageTable:
    """Read a table from its csv file with its warnings and notes; every cell that comes from runs links to them.

    Args:
        files: what is offered for download, name -> path from the page.

    Raises:
        PlumblineError: the table has no provenance, or one of another state of it.
    """
    content = provenance.read(path)
    with open(path, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    columns = [entry for entry in content["columns"] if entry["shown_in_markdown"]]
    short = _choose_short_columns(columns)
    # A table that was made by an earlier version does not state what stands once.
    repeats = provenance.find_repeating_rows([entry["name"] for entry in columns if entry.get("hide_repeats")], rows)
    cells_by_row = [
        [
            _make_cell(entry, row, rows, content, sources, again=again and entry.get("hide_repeats", False))
            for entry in columns
        ]
        for row, again in zip(rows, repeats, strict=True)
    ]
    return PageTable(
        id=f"table-{content['table']}",
        name=content["table"],
        title=content["title"],
        heads=[
            _make_head(entry, [cells[place] for cells in cells_by_row], short=entry["name"] in short)
            for place, entry in enumerate(columns)
        ],
        rows=cells_by_row,
        above=content["warnings"],
        below=content["notes"],
        files=files,
    )


def list_runs(path: Path) -> list[str]:
    """List the keys of the runs that a table rests on; none if its provenance names none.

    Raises:
        PlumblineError: as `read_table`.
    """
    return list(provenance.read(path)["runs"])


def _choose_short_columns(columns: list[dict[str, Any]]) -> set[str]:
    """The columns of a table that are shown where there is room for few: those of a terminal, each with what is printed
    next to it; all where a terminal has none.
    """
    narrow = {entry["name"] for entry in columns if entry.get("shown_in_terminal")}
    beside = {f"{name}_published" for name in narrow}
    return {entry["name"] for entry in columns if not narrow or entry["name"] in narrow | beside}


def _make_head(entry: dict[str, Any], cells: list[HtmlCell], *, short: bool) -> ColumnHead:
    kind = entry["kind"] if entry["kind"] in provenance.KINDS else ""
    wide = not entry["format"] and max((len(cell.text) for cell in cells), default=0) > WIDE
    return ColumnHead(
        text=entry["header"],
        kind=kind,
        numeric=bool(entry["format"]),
        wide=wide,
        printed=kind == provenance.KINDS[1],
        short=short,
    )


def _make_cell(
    entry: dict[str, Any],
    row: dict[str, str],
    rows: list[dict[str, str]],
    content: dict[str, Any],
    sources: RunLinks,
    *,
    again: bool,
) -> HtmlCell:
    name, key = entry["name"], row[content["key"]]
    value, word = row[name], content["why_empty"].get(key, {}).get(name, "")
    keys = _list_cell_runs(content, row, name)
    number = _parse_number(value) if entry["format"] else None
    title = sources.title(keys) or content["sources"].get(key, {}).get(name, "")
    return HtmlCell(
        text=_format_cell(value, number, entry) if value else word,
        sort=number if entry["format"] else value or None,
        href=sources.href(keys),
        title=title,
        mark=_judge_cell(entry, row, rows, content),
        word=not value,
        badges=split_badges(value or word) if not entry["format"] or not value else (),
        again=again,
    )


def _format_cell(value: str, number: float | None, entry: dict[str, Any]) -> str:
    """A csv cell as people read it."""
    if number is None or entry["format"] == AS_PRINTED:
        return value
    return format_number(int(value) if value.lstrip("-").isdigit() else number, entry["format"])


def _judge_cell(
    entry: dict[str, Any], row: dict[str, str], rows: list[dict[str, str]], content: dict[str, Any]
) -> agreement_with_print.CellMark | None:
    """How a reproduced cell stands to the printed one next to it."""
    printed_column = f"{entry['name']}_published"
    if entry["kind"] == "published" or printed_column not in row:
        return None
    runs = _list_cell_runs(content, row, entry["name"])
    return agreement_with_print.judge_cell(
        row[entry["name"]],
        row[printed_column],
        content["preset"],
        trained=bool(runs),
        texts={content["runs"][key].get("texts", DOCUMENTS) for key in runs} <= {DOCUMENTS},
        spread=_find_spread(entry.get("sd_column", ""), row, rows, content),
        seeds=_count_seeds(content, row, entry["name"]),
    )


def _find_spread(
    column: str, row: dict[str, str], rows: list[dict[str, str]], content: dict[str, Any]
) -> agreement_with_print.SeedSpread | None:
    """The spread of a row over its seeds, which stands in `column`; of a row that has none, being a single run, that of
    all rows which have one."""

    def read_spreads(table_row: dict[str, str]) -> list[agreement_with_print.SeedSpread]:
        sigma, seeds = _parse_number(table_row[column]), _count_seeds(content, table_row, column)
        return [agreement_with_print.SeedSpread(sigma, seeds - 1)] if sigma and seeds > 1 else []

    return (
        agreement_with_print.SeedSpread.together(
            read_spreads(row) or [spread for table_row in rows for spread in read_spreads(table_row)]
        )
        if column
        else None
    )


def _list_cell_runs(content: dict[str, Any], row: dict[str, str], column: str) -> list[str]:
    """The runs behind a cell."""
    runs: list[str] = content["cells"].get(row[content["key"]], {}).get(column, [])
    return runs


def _count_seeds(content: dict[str, Any], row: dict[str, str], column: str) -> int:
    """How many seeds they are of."""
    return len({run.rpartition("/")[2] for run in _list_cell_runs(content, row, column)})


def _parse_number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def describe_problem(path: Path) -> str:
    """Describe why a table that is there cannot be shown; empty if it can."""
    try:
        provenance.read(path)
    except PlumblineError as error:
        return str(error)
    return ""
