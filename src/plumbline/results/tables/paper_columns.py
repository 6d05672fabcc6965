"""Chooses the columns of a table that fit in a paper, estimates how wide they are in print, and writes their cells."""

from __future__ import annotations

import re

from plumbline.results.tables.provenance import find_repeating_rows
from plumbline.results.tables.table import Column, Table

#: Columns of a table for a paper, where its study marks more than one of them and no others (`Column.paper`).
MOST = 10

#: Points that a table may take before it is made smaller, a sign and the room between two columns at TeX's \\small.
ROOM, SIGN, GAP = 430.0, 4.7, 7.0

#: Signs from which on a cell of words is broken into lines, and the points that such a column takes at least.
LONG, LEAST = 20, 76.0

#: Signs of a line of a heading, at least.
HEADING = 9


def choose_paper_columns(table: Table, room: float = ROOM) -> list[Column]:
    """Choose the columns of a table that a paper has room for, in declared order.

    They are those that its study marks as `paper`; else all readable ones, where these are ten at most and fit, or none
    is marked `narrow`; else the narrow ones with the printed columns next to them, and others as far as `room` (in
    points) allows.
    """
    if marked := [column for column in table.columns if column.paper]:
        return marked
    readable = [column for column in table.columns if column.readable]
    narrow = {column.name for column in table.columns if column.narrow}
    if not narrow or (len(readable) <= MOST and sum(estimate_width(table, column) for column in readable) <= room):
        return readable
    pairs = _pair_columns(readable)
    chosen: list[Column] = []
    for pair in sorted(pairs, key=lambda pair: not any(column.name in narrow for column in pair)):
        points = sum(estimate_width(table, column) for column in (*chosen, *pair))
        if any(column.name in narrow for column in pair) or (len(chosen) + len(pair) <= MOST and points <= room):
            chosen += pair
    names = {column.name for column in chosen}
    return [column for column in readable if column.name in names]


def _pair_columns(columns: list[Column]) -> list[list[Column]]:
    """Group columns, each with the column of printed numbers that stands next to it."""
    pairs: list[list[Column]] = []
    for column in columns:
        if column.kind == "published" and pairs and column.name == f"{pairs[-1][0].name}_published":
            pairs[-1].append(column)
        else:
            pairs.append([column])
    return pairs


def longest_cell(table: Table, column: Column) -> int:
    """Count the signs of a column's longest cell."""
    return max((len(table.format_cell(row, column)) for row in table.rows), default=0)


def break_heading(heading: str, signs: int) -> list[str]:
    """Break a heading into lines that are hardly longer than the column's cells of so many signs."""
    most, lines = max(HEADING, min(signs, LONG)), [""]
    for word in re.findall(r"\s*[^\s_]{3,}_+(?=[^\s_]{3})|\s*\S+", heading):
        if lines[-1] and len(lines[-1] + word) > most:
            lines.append("")
        lines[-1] += word if lines[-1] else word.lstrip()
    return lines


def estimate_width(table: Table, column: Column) -> float:
    """Estimate the points that a column takes in print; a column of long words takes the least that it needs."""
    signs = longest_cell(table, column)
    if is_long(table, column):
        return LEAST + GAP
    return max(signs, *map(len, break_heading(column.header, signs))) * SIGN + GAP


def is_long(table: Table, column: Column, more_than: int = LONG) -> bool:
    """Return whether a column's texts are broken into lines: those of more signs than `more_than`."""
    return not column.numeric and longest_cell(table, column) > more_than


def write_cells(table: Table, columns: list[Column]) -> list[list[str]]:
    """Write the cells of some columns as people read them, row by row, without the repeats of `Column.once`."""
    values = [{name: cell.value for name, cell in row.items()} for row in table.rows]
    repeated = find_repeating_rows([column.name for column in table.columns if column.once], values)
    return [
        ["" if repeats and column.once else table.format_cell(row, column) for column in columns]
        for row, repeats in zip(table.rows, repeated, strict=True)
    ]
