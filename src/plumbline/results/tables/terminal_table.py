"""Prints a finished table in a terminal: warnings above it, at most 80 columns wide, read from its files alone."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from plumbline.core.errors import visible
from plumbline.results.tables import provenance
from plumbline.results.tables.number_formats import AS_PRINTED, format_number

#: What a terminal holds; the least room that names of rows are folded into.
WIDTH, NAMES = 80, 12
#: Characters at most that a column of words takes; longer ones are folded.
TEXT = 16
#: Blanks between two columns.
GAP = 2


def format_for_terminal(table: Path) -> str:
    """Write a finished table for a terminal, from its csv: warnings, title, columns, and where the whole of it lies.

    The columns are those that its study marked as `narrow`, else as many readable ones as there is room for.

    Raises:
        PlumblineError: there is no such table, or no provenance next to it.
    """
    content = provenance.read(table)
    with open(table, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    reasons = content["why_empty"]
    columns = [entry for entry in content["columns"] if entry["shown_in_terminal"]]
    columns = columns or [entry for entry in content["columns"] if entry["shown_in_markdown"]]
    columns.sort(key=lambda entry: entry["kind"] == "published")  # ours first, then what is printed
    cells = {
        entry["name"]: [_format_cell(row[entry["name"]], entry, reasons.get(row[content["key"]], {})) for row in rows]
        for entry in columns
    }
    fitting, room = _choose_fitting_columns(columns, cells)
    body = _draw_grid(
        fitting, [[cells[entry["name"]][number] for entry in fitting] for number in range(len(rows))], room
    )
    left_out = len(content["columns"]) - len(fitting)
    whole = f"{table}" + (f" ({left_out} more columns)" if left_out > 0 else "")
    paper = content.get("paper", "")  # a table that was made by an earlier version does not state it
    above = [*content["warnings"], *([f"{content['study']}: {paper}"] if paper else []), content["title"]]
    wrapped = [textwrap.fill(text, WIDTH, break_on_hyphens=False) for text in above]
    return visible(
        "\n\n".join([*wrapped, body, textwrap.fill(f"The whole table: {whole}", WIDTH, break_on_hyphens=False)])
    )


def _format_cell(value: str, entry: dict[str, Any], reasons: dict[str, str]) -> str:
    """Format a csv cell as people read it."""
    if not value or not entry["format"] or entry["format"] == AS_PRINTED:
        return value or reasons.get(entry["name"], "")
    is_count = value.lstrip("-").isdigit()
    return format_number(int(value) if is_count else float(value), entry["format"])


def _heading(entry: dict[str, Any]) -> str:
    """Return a column's heading; that of a printed column names its kind."""
    return f"{entry['header']} ({entry['kind']})" if entry["kind"] == "published" else entry["header"]


def _draw_grid(columns: list[dict[str, Any]], rows: list[list[str]], room: int) -> str:
    """Draw the table as text; names of rows that are too long are folded."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    for number, entry in enumerate(columns):
        justify = "right" if entry["format"] else "left"
        width = room if number == 0 else None if entry["format"] else TEXT
        grid.add_column(_heading(entry), justify=justify, overflow="fold", max_width=width)
    for row in rows:
        grid.add_row(*row)
    stream = io.StringIO()
    Console(file=stream, width=WIDTH, color_system=None, markup=False, emoji=False, highlight=False).print(grid)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def _choose_fitting_columns(
    columns: list[dict[str, Any]], cells: dict[str, list[str]]
) -> tuple[list[dict[str, Any]], int]:
    """Choose the columns that fit next to the first, which names the rows; return them and its room."""
    room, fitting = WIDTH, columns[:1]
    for entry in columns[1:]:
        width = max(map(cell_len, [_heading(entry), *cells[entry["name"]]]))
        width = GAP + (width if entry["format"] else min(width, TEXT))
        if room - width < NAMES:
            break
        room -= width
        fitting.append(entry)
    return fitting, room
