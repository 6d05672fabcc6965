"""Writes the tabulars of a paper's LaTeX as CSV into a folder, with the source of each cell and what was not read."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from plumbline.audit.paper.latex.cell_text import CellText
from plumbline.audit.paper.latex.running_text import read_passages, read_sections
from plumbline.audit.paper.latex.source_files import Source, read_source
from plumbline.audit.paper.latex.table_cells import Columns, ReadCell
from plumbline.audit.paper.latex.tabulars import CELLS, ReadTable, find_tables
from plumbline.audit.paper.latex.tokens import read_tokens
from plumbline.audit.paper.paper_source import (
    SOURCES,
    PaperSource,
    Passage,
    TableSource,
    UnreadTable,
    read_paper_source,
)
from plumbline.audit.paper.paper_table import CELLS as ALL_CELLS
from plumbline.audit.paper.paper_table import COLUMNS, ROWS, TABLES
from plumbline.audit.paper.printed_cell import mark_text, read_cell
from plumbline.core.csv_text import write_rows
from plumbline.core.errors import UsageError, visible
from plumbline.core.files import atomic_write_json, atomic_write_text, make_folder, sha256_text

#: Most places that are named as not read, and characters of a line that is kept, and of a cell that is no sentence.
NOT_READ, LINE, SHORT = 1_000, 300, 60

#: A number that is no part of a name, as those of "gpt-4o" and "Falcon 7B" are; or one in a macro that is not known.
_ALONE = re.compile(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])|\\[A-Za-z]+\W?\d")


def write_tables(path: Path, folder: Path) -> None:
    """Read the tables of a LaTeX file into a folder: `table1.csv`, ... and `sources.json`.

    Raises:
        UsageError: there is no such file, no table in it, or the folder has another table under such a name.
    """
    source = read_source(path)
    tokens = read_tokens(source)
    sections = read_sections(tokens)
    tables, unread = find_tables(tokens, source, sections)
    paper_source = PaperSource(paper=path.name)
    texts: dict[str, str] = {}
    numbers = {table.label: table.floating for table in tables if table.label and table.floating}
    captions: list[Passage] = []
    passages, not_read = read_passages(tokens, source, sections, numbers), list(source.not_read)
    cells = 0
    for name, table in zip(_name_tables(tables), tables, strict=True):
        size = len(table.rows) * max((sum(cell.columns for cell in row) for row in table.rows), default=0)
        if len(texts) == TABLES or cells + min(size, CELLS) > ALL_CELLS:
            table.problem = f"after {TABLES} tables, or {ALL_CELLS} cells, nothing more is read"
        entry = TableSource(where=table.where, caption=table.caption[:500], label=table.label[:100])
        text, problems = ("", []) if table.problem else _write_csv(table, entry)
        not_read += [f"{name}, {problem}" for problem in problems]
        if text:
            cells += size
            captions.append(Passage("caption", table.section[:200], table.where, table.caption[:4_000], name))
            entry.section, entry.sha256 = table.section[:200], sha256_text(text)
            texts[name], paper_source.tables[name] = text, entry
        elif table.problem:
            unread.append(UnreadTable(table.where, table.kind, table.problem))
    paper_source.passages = [*passages, *(each for each in captions if each.text)]
    _keep_lines(paper_source, source)
    paper_source.tables_there = len(texts) + len(unread)
    paper_source.unread = unread[:NOT_READ]
    paper_source.not_read = _shorten([*(f"{each.where}: {each.kind}: {each.why}" for each in unread), *not_read])
    if not texts:
        why = f" (not read: {'; '.join(paper_source.not_read[:3])})" if paper_source.not_read else ""
        raise UsageError(f"--from {path}: there is no table that could be read in it{why}; type the tables as CSV")
    stale_paths = _find_stale(path, folder, texts)
    make_folder(folder)
    for stale_path in stale_paths:
        stale_path.unlink()
    for name, text in texts.items():
        atomic_write_text(folder / f"{name}.csv", text)
    atomic_write_json(folder / SOURCES, msgspec.to_builtins(paper_source, str_keys=True))


def _find_stale(path: Path, folder: Path, texts: dict[str, str]) -> list[Path]:
    """The CSVs of the folder that were read from this paper before, and which it does not have any more.

    Raises:
        UsageError: one that would be lost was edited, or is not of this paper.
    """
    try:
        former_source = read_paper_source(folder)
    except UsageError:  # it is written anew
        former_source = PaperSource()
    stale_paths = []
    for file in sorted(folder.glob("*.csv")):
        name, text = file.stem, file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        former_table = former_source.tables.get(name)
        if not file.is_file() or text == texts.get(name) or (former_table is None and name not in texts):
            continue
        if former_source.paper != path.name or former_table is None or former_table.sha256 != sha256_text(text):
            differs = f"is there already and reads otherwise than {path}" if name in texts else f"is no table of {path}"
            raise UsageError(
                f"{file}: {differs}, and another hand or paper wrote it; leave --from out to audit it as it is, move "
                "it away, or name an empty folder"
            )
        stale_paths.append(file)
    return stale_paths


def _keep_lines(paper_source: PaperSource, source: Source) -> None:
    """Keep the lines of LaTeX that the cells of the tables stand on."""
    lines: dict[str, str] = {}
    for line in source.lines:
        lines[line.where] = lines.get(line.where, "") + line.text
    for table in paper_source.tables.values():
        for where in dict.fromkeys(where for row in table.cells for where in row if where):
            table.lines[where] = visible(lines.get(where, "").strip())[:LINE]


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


def _write_csv(table: ReadTable, entry: TableSource) -> tuple[str, list[str]]:
    """A table as CSV, and the cells that could not be read; an empty text if nothing could, and `table.problem`.

    `entry` gets the places of the cells, and the titles that stand above groups of rows.
    """
    width = max((sum(cell.columns for cell in row) for row in table.rows), default=0)
    size = f"{len(table.rows)} rows and {width} columns"
    if len(table.rows) * width > CELLS or len(table.rows) > ROWS or width > COLUMNS:
        table.problem = f"a tabular of {size}; at most {ROWS} rows, {COLUMNS} columns and {CELLS} cells are read"
        return "", []
    grid = [_place_cells(row, width) for row in table.rows]
    _repeat(grid)
    _join_columns(grid, table.columns)
    head = min(table.head or 1, len(grid) - 1) if len(grid) > 1 else 1
    head = next((place for place in range(1, head) if _is_body(grid, place)), head)
    while head < len(grid) - 1 and _is_head(grid[head]):
        head += 1
    width = len(grid[0]) if grid else 0
    columns = [[cell.content.text for cell in column if cell is not None] for column in zip(*grid[head:], strict=True)]
    if len(grid) <= head or width < 2 or not any(_prints_number(text) for column in columns for text in column):
        if width > 1 and any(map(_holds_numbers, columns[1:])):
            table.problem = f"a tabular of {size} in which no cell is a number in full"
        return "", [] if table.problem else [f"{table.where}: a tabular of {size} without numbers to compare"]
    names = _name_columns(grid[:head], width)
    names[0] = names[0] or "name"
    text, problems = io.StringIO(), []
    text.write(write_rows([names]))
    group, numbers, parted = table.groups[head], 0, False
    for row, cells, number in zip(table.rows[head:], grid[head:], table.groups[head:], strict=True):
        filled_cells = [cell for cell in cells if cell is not None and cell.content.text]
        if not filled_cells:
            text.write("\n")
            parted = parted or bool(entry.cells)
            continue
        title = len(filled_cells) == 1 and (row[0].columns > 1 or len(row) == 1) and width > 2
        if entry.cells:
            text.write("\n" * ((number != group) + title))
            parted = parted or number != group or title
        group = number
        if title:
            place = numbers + parted
            prefix = f"{entry.titles[place]} / " if place in entry.titles else ""
            entry.titles[place] = visible(prefix + filled_cells[0].content.text)[:200]
            continue
        numbers, parted = numbers + parted, False
        for cell in cells:
            if cell is not None and cell.content.unknown and not cell.filled:
                unknown = ", ".join(dict.fromkeys(cell.content.unknown))
                problems.append(f"{cell.where}: the cell {cell.content.text[:60]!r}: not known: {unknown[:100]}")
        text.write(write_rows([map(_format_cell, cells)]))
        entry.cells.append([cell.where if cell else "" for cell in cells])
    return text.getvalue(), problems


def _holds_numbers(column: Sequence[str]) -> bool:
    """Whether most cells of a column have a number, beside other words."""
    holding = [text for text in column if len(text) < SHORT and _ALONE.search(text)]
    return 2 * len(holding) > sum(map(bool, column))


def _prints_number(text: str) -> bool:
    cell = read_cell(text)
    return cell.number is not None or bool(cell.values)


def _is_head(row: list[ReadCell | None]) -> bool:
    """Whether a row below the first rule still belongs to the head: it names no row and has no number (units)."""
    texts = [cell.content.text if cell else "" for cell in row]
    return not texts[0] and any(texts) and not any(map(_prints_number, texts))


def _is_body(grid: list[list[ReadCell | None]], place: int) -> bool:
    """Whether a row above the first rule is none of the head: it names a row, has numbers, and a row above it names
    every column."""
    first, *other_cells = grid[place]
    numbers = [_prints_number(cell.content.text) for cell in other_cells if cell and cell.content.text]
    return (
        first is not None
        and bool(first.content.text)
        and not first.filled
        and 2 * sum(numbers) > len(numbers)
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


def _repeat(grid: list[list[ReadCell | None]]) -> None:
    """Repeat a cell over several rows in each of them, where they are empty: below it, or above where it says so."""
    for place, row in enumerate(grid):
        for column, cell in enumerate(row):
            if cell is None or cell.rows in (0, 1) or cell.filled:
                continue
            other_rows = (
                grid[place + 1 : place + cell.rows] if cell.rows > 0 else grid[max(0, place + cell.rows + 1) : place]
            )
            for other_row in other_rows:
                other_cell = other_row[column]
                if other_cell is None or not other_cell.content.text:
                    other_row[column] = ReadCell(
                        content=cell.content, columns=cell.columns, where=cell.where, filled=True
                    )


def _join_columns(grid: list[list[ReadCell | None]], columns: Columns) -> None:
    """Leave out the columns that are not printed, and join what is one number in print with the column before it:
    decimals, and spreads, which the table's format parts by ± or whose cells all begin with it."""
    for column in range(len(grid[0]) - 1 if grid else 0, -1, -1):
        texts = [cell.content.text for row in grid if (cell := row[column]) is not None and cell.content.text]
        signed = sum(text.startswith("±") for text in texts)
        hidden, decimals, stated = (column in places for places in (columns.hidden, columns.decimals, columns.spread))
        spread = stated or (signed and not any(map(_prints_number, texts)) and 2 * signed >= len(texts))
        if not hidden and (not column or not (decimals or spread)):
            continue
        for row in grid:
            cell = row.pop(column)
            if cell is None:
                over = next((place for place in range(column - 1, -1, -1) if row[place] is not None), None)
                if over is not None and (first := row[over]) is not None and first.columns > column - over:
                    first.columns -= 1
            elif hidden and cell.columns > 1:  # it goes over the next ones, which are printed
                row[column : column + 1] = [replace(cell, columns=cell.columns - 1)]
            elif not hidden and cell.content.text:
                row[column - 1] = _join_cells(row[column - 1], cell, decimals)


def _join_cells(value: ReadCell | None, cell: ReadCell, decimals: bool) -> ReadCell:
    """A cell with the digits right of its decimal point, or with its spread."""
    if value is None or not value.content.text:
        return cell
    content, addition = value.content, cell.content
    if decimals:
        text = f"{content.text}.{addition.text}"
    elif _prints_number(content.text):
        text = f"{content.text} ± {re.sub('^± *', '', addition.text)}"
    else:
        return value
    joined = CellText(
        text=text,
        bold=content.bold and (addition.bold or not decimals),
        underlined=content.underlined and (addition.underlined or not decimals),
        unknown=[*content.unknown, *addition.unknown],
    )
    return replace(value, content=joined)


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
