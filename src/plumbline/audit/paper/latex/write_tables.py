"""Writes the tabulars of a paper's LaTeX as CSV into a folder, with the source of each cell and what was not read."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from plumbline.audit.paper.latex.source_files import read_source
from plumbline.audit.paper.latex.tabulars import CELLS, ReadCell, ReadTable, find_tables
from plumbline.audit.paper.latex.tokens import read_tokens
from plumbline.audit.paper.paper_table import SOURCES, TABLES
from plumbline.audit.paper.printed_cell import mark_text, read_cell
from plumbline.core.errors import UsageError, visible
from plumbline.core.files import atomic_write_json, atomic_write_text, make_folder, sha256_text

#: Most places that are named as not read.
NOT_READ = 1_000


def write_tables(path: Path, folder: Path) -> None:
    """Read the tables of a LaTeX file into a folder: `table1.csv`, ... and `sources.json`.

    Raises:
        UsageError: there is no such file, no table in it, or the folder has another table under such a name.
    """
    source = read_source(path)
    tables = find_tables(read_tokens(source), source)
    texts: dict[str, str] = {}
    descriptions: dict[str, Any] = {}
    not_read = list(source.not_read)
    for name, table in zip(_name_tables(tables), tables, strict=True):
        titles: list[str] = []
        text, places, problems = _write_csv(table, titles)
        not_read += [f"{name}, {problem}" for problem in (*table.not_read, *problems)]
        if not text:
            continue
        if len(texts) == TABLES:
            not_read.append(f"{table.where}: after {TABLES} tables nothing more is read")
            break
        texts[name] = text
        descriptions[name] = {
            "caption": table.caption[:500],
            "label": table.label[:100],
            "where": table.where,
            "sha256": sha256_text(text),
            "titles": titles,
            "cells": places,
        }
    if not texts:
        why = f" (not read: {'; '.join(not_read[:3])})" if not_read else ""
        raise UsageError(f"--from {path}: there is no table that could be read in it{why}; type the tables as CSV")
    for name, text in texts.items():
        there = folder / f"{name}.csv"
        if there.is_file() and there.read_text(encoding="utf-8", errors="replace") != text:
            raise UsageError(
                f"{there}: is there already and reads otherwise than {path}; leave --from out to audit it as it is, or "
                "name an empty folder"
            )
    make_folder(folder)
    for name, text in texts.items():
        atomic_write_text(folder / f"{name}.csv", text)
    atomic_write_json(folder / SOURCES, {"paper": path.name, "tables": descriptions, "not_read": _shorten(not_read)})


def _shorten(not_read: list[str]) -> list[str]:
    """What was not read, up to a limit; how much more there is."""
    more = len(not_read) - NOT_READ
    return [*not_read[:NOT_READ], f"and {more:,} places more"] if more > 0 else not_read


def _name_tables(tables: list[ReadTable]) -> list[str]:
    """Names of the tables: by the number of the floating table they stand in, with a letter where there are several."""
    in_float, counts, loose = Counter(table.floating for table in tables), Counter[int](), 0
    names = []
    for table in tables:
        if not table.floating:
            loose += 1
            names.append(f"tabular{loose}")
            continue
        counts[table.floating] += 1
        letter = f"_{counts[table.floating]}" if in_float[table.floating] > 1 else ""
        names.append(f"table{table.floating}{letter}")
    return names


def _write_csv(table: ReadTable, titles: list[str]) -> tuple[str, list[list[str]], list[str]]:
    """A table as CSV, the places of its cells, and what could not be read; an empty text if nothing could.

    `titles` gets the titles that stand above groups of rows.
    """
    problems: list[str] = []
    if not table.rows:
        return "", [], problems
    width = max(sum(cell.columns for cell in row) for row in table.rows)
    if len(table.rows) * width > CELLS:
        size = f"{len(table.rows)} rows and {width} columns"
        return "", [], [f"{table.where}: a tabular of {size}; at most {CELLS} cells are read"]
    grid = [_place_cells(row, width) for row in table.rows]
    _repeat_down(grid)
    head = min(table.head or 1, len(grid) - 1) if len(grid) > 1 else 1
    head = next((place for place in range(1, head) if _is_body(grid, place)), head)
    while head < len(grid) - 1 and _is_head(grid[head]):
        head += 1
    names = _name_columns(grid[:head], width)
    body = [cell.content.text for row in grid[head:] for cell in row if cell is not None]
    if len(grid) <= head or width < 2 or not any(read_cell(text).number for text in body):
        return "", [], [f"{table.where}: a tabular of {len(grid)} rows and {width} columns without numbers to compare"]
    names[0] = names[0] or "name"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    places: list[list[str]] = []
    group = table.groups[head]
    for row, cells, number in zip(table.rows[head:], grid[head:], table.groups[head:], strict=True):
        written = [cell for cell in cells if cell is not None and cell.content.text]
        if number != group and places:
            text.write("\n")
        group = number
        if len(written) == 1 and (row[0].columns > 1 or len(row) == 1) and width > 2:
            text.write("\n")  # a title of the rows below it
            titles.append(f"{written[0].where}: {written[0].content.text[:200]}")
            continue
        for cell in cells:
            if cell is not None and cell.content.unknown and not cell.filled:
                unknown = ", ".join(dict.fromkeys(cell.content.unknown))
                problems.append(f"{cell.where}: the cell {cell.content.text[:60]!r}: not known: {unknown[:100]}")
        writer.writerow([_format_cell(cell) for cell in cells])
        places.append([cell.where if cell else "" for cell in cells])
    return text.getvalue(), places, problems


def _is_head(row: list[ReadCell | None]) -> bool:
    """Whether a row below the first rule still belongs to the head: it names no row and has no number (units)."""
    texts = [cell.content.text if cell else "" for cell in row]
    return not texts[0] and any(texts) and all(read_cell(text).number is None for text in texts)


def _is_body(grid: list[list[ReadCell | None]], place: int) -> bool:
    """Whether a row above the first rule is none of the head: it names a row, has numbers, and a row above it names
    every column."""
    first, *others = grid[place]
    numbers = [read_cell(cell.content.text).number for cell in others if cell and cell.content.text]
    return (
        first is not None
        and bool(first.content.text)
        and not first.filled
        and 2 * sum(number is not None for number in numbers) > len(numbers)
        and any(all(cell and cell.content.text and cell.columns == 1 for cell in row[1:]) for row in grid[:place])
    )


def _format_cell(cell: ReadCell | None) -> str:
    if cell is None:
        return ""
    return mark_text(visible(cell.content.text[:500]), bold=cell.content.bold, underlined=cell.content.underlined)


def _place_cells(row: list[ReadCell], width: int) -> list[ReadCell | None]:
    """A row with a place for each column; a cell over several stands in the first of them."""
    cells: list[ReadCell | None] = []
    for cell in row:
        cells += [cell, *[None] * (cell.columns - 1)]
    return [*cells, *[None] * (width - len(cells))]


def _repeat_down(grid: list[list[ReadCell | None]]) -> None:
    """Repeat a cell over several rows in each of them, where they are empty."""
    for place, row in enumerate(grid):
        for column, cell in enumerate(row):
            if cell is None or cell.rows == 1 or cell.filled:
                continue
            for below in grid[place + 1 : place + cell.rows]:
                there = below[column]
                if there is None or not there.content.text:
                    below[column] = ReadCell(content=cell.content, columns=cell.columns, where=cell.where, filled=True)


def _name_columns(rows: list[list[ReadCell | None]], width: int) -> list[str]:
    """Names of the columns: the texts above each, from the top, each once; a cell over several is above all of them."""
    names: list[list[str]] = [[] for _ in range(width)]
    for row in rows:
        over: ReadCell | None = None
        columns_left = 0
        for column in range(width):
            cell = row[column]
            if cell is not None:
                over, columns_left = cell, cell.columns
            columns_left -= 1
            text = over.content.text if over is not None and columns_left >= 0 else ""
            if text and text not in names[column]:
                names[column].append(text)
    return [visible(" / ".join(parts)[:300]) for parts in names]
