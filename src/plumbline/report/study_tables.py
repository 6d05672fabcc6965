"""Reads a study's table for a page from its csv and provenance, with reproduced numbers next to printed ones."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.report import agreement_with_print
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, RunLinks, badges
from plumbline.results.tables import provenance
from plumbline.results.tables.number_formats import AS_PRINTED, format_number
from plumbline.specs.corpus import DOCUMENTS

#: Words in a cell from which on its column is one of sentences.
WIDE = 36


def grid(path: Path, sources: RunLinks, files: dict[str, str]) -> PageTable:
    """Read a table from its csv file with its warnings and notes; every cell that comes from runs links to them.

    Args:
        files: what is offered for download, name -> path from the page.

    Raises:
        PlumblineError: the table has no provenance, or one of another state of it.
    """
    content = provenance.read(path)
    with open(path, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    shown = [entry for entry in content["columns"] if entry["shown_in_markdown"]]
    short = _short(shown)
    # A table that was made by an earlier version does not say what stands once.
    repeats = provenance.find_repeating_rows([entry["name"] for entry in shown if entry.get("hide_repeats")], rows)
    made = [
        [_cell(entry, row, rows, content, sources, again=again and entry.get("hide_repeats", False)) for entry in shown]
        for row, again in zip(rows, repeats, strict=True)
    ]
    return PageTable(
        id=f"table-{content['table']}",
        name=content["table"],
        title=content["title"],
        heads=[
            _head(entry, [cells[at] for cells in made], short=entry["name"] in short) for at, entry in enumerate(shown)
        ],
        rows=made,
        above=content["warnings"],
        below=content["notes"],
        files=files,
    )


def runs_of(path: Path) -> list[str]:
    """List the keys of the runs that a table rests on; none where its provenance names none.

    Raises:
        PlumblineError: as `grid`.
    """
    return list(provenance.read(path)["runs"])


def _short(columns: list[dict[str, Any]]) -> set[str]:
    """The columns of a table that are shown where there is room for few: those of a terminal, each with what is printed
    beside it; all where a terminal has none.
    """
    narrow = {entry["name"] for entry in columns if entry.get("shown_in_terminal")}
    beside = {f"{name}_published" for name in narrow}
    return {entry["name"] for entry in columns if not narrow or entry["name"] in narrow | beside}


def _head(entry: dict[str, Any], cells: list[HtmlCell], *, short: bool) -> ColumnHead:
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


def _cell(
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
    keys = _runs(content, row, name)
    number = _number(value) if entry["format"] else None
    said = sources.title(keys) or content["sources"].get(key, {}).get(name, "")
    return HtmlCell(
        text=_shown(value, number, entry) if value else word,
        sort=number if entry["format"] else value or None,
        href=sources.href(keys),
        title=said,
        mark=_mark(entry, row, rows, content),
        word=not value,
        badges=badges(value or word) if not entry["format"] or not value else (),
        again=again,
    )


def _shown(value: str, number: float | None, entry: dict[str, Any]) -> str:
    """A csv cell as people read it."""
    if number is None or entry["format"] == AS_PRINTED:
        return value
    return format_number(int(value) if value.lstrip("-").isdigit() else number, entry["format"])


def _mark(
    entry: dict[str, Any], row: dict[str, str], rows: list[dict[str, str]], content: dict[str, Any]
) -> agreement_with_print.CellMark | None:
    """How a reproduced cell stands to the printed one beside it."""
    beside = f"{entry['name']}_published"
    if entry["kind"] == "published" or beside not in row:
        return None
    runs = _runs(content, row, entry["name"])
    return agreement_with_print.mark(
        row[entry["name"]],
        row[beside],
        content["preset"],
        trained=bool(runs),
        texts={content["runs"][key].get("texts", DOCUMENTS) for key in runs} <= {DOCUMENTS},
        spread=_spread(entry.get("sd_column", ""), row, rows, content),
        seeds=_seeds(content, row, entry["name"]),
    )


def _spread(
    column: str, row: dict[str, str], rows: list[dict[str, str]], content: dict[str, Any]
) -> agreement_with_print.SeedSpread | None:
    """The spread of a row over its seeds, which stands in `column`; of a row that has none, being a single run, that of
    all rows which have one."""

    def of(one: dict[str, str]) -> list[agreement_with_print.SeedSpread]:
        sigma, seeds = _number(one[column]), _seeds(content, one, column)
        return [agreement_with_print.SeedSpread(sigma, seeds - 1)] if sigma and seeds > 1 else []

    return (
        agreement_with_print.SeedSpread.together(of(row) or [found for one in rows for found in of(one)])
        if column
        else None
    )


def _runs(content: dict[str, Any], row: dict[str, str], column: str) -> list[str]:
    """The runs behind a cell."""
    found: list[str] = content["cells"].get(row[content["key"]], {}).get(column, [])
    return found


def _seeds(content: dict[str, Any], row: dict[str, str], column: str) -> int:
    """How many seeds they are of."""
    return len({run.rpartition("/")[2] for run in _runs(content, row, column)})


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def problem(path: Path) -> str:
    """Say why a table that is there cannot be shown; empty where it can."""
    try:
        provenance.read(path)
    except PlumblineError as error:
        return str(error)
    return ""
