"""Prints a finished table in a terminal, read from its files alone: the paper's columns in 80 signs, ours where there
is room."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len, chop_cells

from plumbline.core.errors import visible
from plumbline.results.tables.finished_table import read_table
from plumbline.results.tables.shown_table import (
    ShownColumn,
    arrange_columns,
    choose_columns,
    place_texts,
    without_repeats,
)
from plumbline.results.tables.table import Table

#: What a terminal holds at least; from the second width on columns are shown that are in no table of a paper.
WIDTH, WIDE = 80, 120
#: The most that names of rows and other texts take before they are folded.
NAMES, TEXT = 12, 16
#: What names of rows keep of a wide terminal.
WIDE_NAMES = 24
#: Blanks between two columns.
GAP = 2


@dataclass(frozen=True, slots=True)
class _Width:
    """Signs that a column takes at least, with every cell and its heading broken where it may be, and at most."""

    least: int
    most: int


def format_for_terminal(path: Path, width: int = WIDTH) -> str:
    """Write a finished table for a terminal of so many signs: a caption, the table, what there is to know, and where
    the whole of it lies.

    The columns are the paper's (else those that the study marked as `narrow`), below each other where a line does not
    hold them, and others as far as these leave room.

    Raises:
        PlumblineError: there is no such table, or no provenance next to it.
    """
    return format_table(read_table(path), path, max(width, WIDTH))


def format_table(table: Table, path: Path, width: int) -> str:
    """Write a table whose csv is `path`; see `format_for_terminal`."""
    columns = arrange_columns(table)
    offered = [column for column in columns if column.of_paper or column.narrow or width >= WIDE] or columns
    names = [column for column in offered if column.label and (column.of_paper or column.narrow)] or offered[:1]
    room = width - sum(_measure(column).least + GAP for column in names) + GAP
    # Columns that are shown for there is room do not take it from the names of rows.
    names_kept = sum(max(0, min(_measure(column).most, WIDE_NAMES) - _measure(column).least) for column in names)
    chosen = choose_columns(
        [column for column in offered if column not in names],
        lambda column: GAP + (_measure(column).most if column.of_paper or column.narrow else _measure(column).least),
        room - (names_kept if width >= WIDE else 0),
        most=len(columns),
    )
    parts = _split(chosen, room)
    above, below = place_texts(table, [*names, *chosen], width)
    left_out = len(table.columns) - len({name for column in (*names, *chosen) for name in column.names})
    below.append(f"The whole table: {path}" + (f" ({left_out} more columns)" if left_out > 0 else ""))
    if table.paper:
        below.insert(0, f"{table.study}: {table.paper}")
    title, *warnings = above
    texts = [textwrap.fill(text, width, break_on_hyphens=False) for text in (*warnings, title)]
    texts += [_draw(without_repeats([*names, *part]), width) for part in parts]
    texts += [textwrap.fill(text, width, break_on_hyphens=False) for text in below]
    return visible("\n\n".join(texts))


def _measure(column: ShownColumn) -> _Width:
    """Measure a column; a number is broken at blanks alone, a text anywhere if it must be."""
    parts = [word for cell in column.cells for line in cell.lines for word in line.split()]
    head = max(map(cell_len, column.heading.split()), default=0)
    longest = max([head, *map(cell_len, parts)])
    lines = [cell_len(line) for cell in column.cells for line in cell.lines]
    least = longest if column.numeric else min(longest, NAMES if column.label else TEXT)
    return _Width(least, max([least, *lines]))


def _split(columns: Sequence[ShownColumn], room: int) -> list[list[ShownColumn]]:
    """Split columns into parts that each fit."""
    parts: list[list[ShownColumn]] = [[]]
    used_width = 0
    for column in columns:
        width = GAP + _measure(column).least
        if parts[-1] and used_width + width > room:
            parts.append([])
            used_width = 0
        parts[-1].append(column)
        used_width += width
    return parts


def _draw(columns: Sequence[ShownColumn], width: int) -> str:
    """Draw columns as text. What is left of a line goes to numbers first, then to names, other texts and headings."""
    sizes = [_measure(column) for column in columns]
    widths = [size.least for size in sizes]
    room = width - sum(widths) - GAP * (len(columns) - 1)
    order = sorted(range(len(columns)), key=lambda place: (not columns[place].numeric, place))
    most_by_place = [(place, sizes[place].most) for place in order]
    for place, most in [*most_by_place, *((place, cell_len(columns[place].heading)) for place in order)]:
        more = max(0, min(most - widths[place], room))
        widths[place] += more
        room -= more
    heads = [_break(column.heading, wide) for column, wide in zip(columns, widths, strict=True)]
    tallest = max(map(len, heads))
    lines = _draw_row([[""] * (tallest - len(head)) + head for head in heads], columns, widths)
    lines.append("─" * (sum(widths) + GAP * (len(columns) - 1)))
    for number in range(len(columns[0].cells)):
        cells = [column.cells[number] for column in columns]
        broken = [
            [part for line in cell.lines for part in _break(line, wide)]
            for cell, wide in zip(cells, widths, strict=True)
        ]
        lines += _draw_row(broken, columns, widths)
    return "\n".join(lines)


def _draw_row(cells: Sequence[list[str]], columns: Sequence[ShownColumn], widths: Sequence[int]) -> list[str]:
    lines = []
    for number in range(max(map(len, cells))):
        parts = []
        for cell, column, wide in zip(cells, columns, widths, strict=True):
            text = cell[number] if number < len(cell) else ""
            blanks = " " * (wide - cell_len(text))
            parts.append(blanks + text if column.numeric else text + blanks)
        lines.append((" " * GAP).join(parts).rstrip())
    return lines


def _break(text: str, width: int) -> list[str]:
    """Break a text into lines at its blanks, and a word that is too long behind its hyphens, else anywhere."""
    lines = [""]
    for word in text.split():
        parts = re.findall(r"[^-/_]*[-/_]+|[^-/_]+", word) if cell_len(word) > width else [word]
        gap = " "
        for part in itertools.chain.from_iterable(chop_cells(part, width) for part in parts):
            if lines[-1] and cell_len(f"{lines[-1]}{gap}{part}") > width:
                lines.append(part)
            else:
                lines[-1] += f"{gap}{part}" if lines[-1] else part
            gap = ""
    return lines
