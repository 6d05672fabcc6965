"""Reads a paper's tables from the CSV files of a folder: row and column names, cells, groups of rows, sources.

The first row names the columns and the first column the rows. A line without any text parts groups of rows, as a rule
does in print. What is too large, ragged or no text is refused by file and line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from statistics import median

from plumbline.audit.paper.names import is_change
from plumbline.audit.paper.paper_source import SOURCES, TableSource, read_paper_source
from plumbline.audit.paper.printed_cell import PARTS, PrintedCell, apply_unit, read_cell
from plumbline.core.csv_text import unmark_formula
from plumbline.core.errors import PlumblineError, UsageError, nearest, visible
from plumbline.core.files import sha256_text
from plumbline.core.foreign_rows import split_rows
from plumbline.published.printed_number import THOUSANDS, PrintedColumn, PrintedNumber

#: Most bytes of a file, tables of a folder, rows and columns of a table, and cells of all tables.
BYTES, TABLES, ROWS, COLUMNS, CELLS = 4_000_000, 200, 2_000, 200, 60_000

#: Names of columns that count something, where all of their numbers are whole; words that may stand next to one.
COUNTS = frozenset(
    ("n", "df", "dof", "seed", "seeds", "run", "runs", "layer", "layers", "head", "heads", "step", "steps")
)
_BESIDE = frozenset(("number", "num", "no", "of", "the"))

#: The beginning of a cell that prints a number and something that is not read.
_BEGINS = re.compile(r"[^\w\\]{0,3}\d+(?:[.,]\d+)?(?![\w.,-]*[a-zA-Z])")


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of a paper.

    Attributes:
        name: the file's name without its ending.
        columns: names of the columns, the first of which names the rows.
        rows: names of the rows.
        cells: row -> column -> what is printed.
        groups: number of the group of each row, counted from 0.
        title: its caption, where known.
        titles: number of a group -> the title above it.
        places: (row's place, column's place) -> where it stands in the paper's source.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: dict[str, dict[str, PrintedCell]]
    groups: tuple[int, ...]
    title: str = ""
    titles: dict[int, str] = field(default_factory=dict)
    source: str = ""
    places: dict[tuple[int, int], str] = field(default_factory=dict)

    def cell(self, row: str, column: str) -> PrintedCell:
        """The cell of a row and a column, by their names.

        Raises:
            UsageError: there is no such row or column.
        """
        for kind, key, places in (("row", row, self._row_places), ("column", column, self._column_places)):
            if key not in places:
                names = list(places)
                raise UsageError(
                    f"{self.name}.csv: there is no {kind} {key!r}{nearest(key, names)} (known: {join_names(names)})"
                )
        return self.cells[row][column]

    def prints(self, row: str, column: str, part: str = "") -> bool:
        """Whether a number that can be computed with stands in the cell: one that is "~3" or "> 3" cannot."""
        cell = self.cell(row, column)
        return cell.part(part) is not None and (bool(part) or cell.relation in "=<")

    def number(self, row: str, column: str, part: str = "") -> PrintedNumber:
        """A cell's number, or another one that is printed with it.

        Raises:
            UsageError: there is no such cell, or no such number stands in it.
        """
        cell = self.cell(row, column)
        text = cell.part(part)
        if text is None or not self.prints(row, column, part):
            content = f"reads {cell.text!r}" if cell.text else "is empty"
            raise UsageError(
                f"{self.name}.csv: {row!r}, {column!r} {content}: no number{f' as its {part}' if part else ''}"
            )
        printed_text = ""
        if not part and column in self.mixed:
            text, printed_text = apply_unit(text, cell.unit), text + cell.unit
        end = f".{part}" if part else ""
        return PrintedNumber(
            text=text,
            exact=not part and column in self.counts,
            relation="<" if cell.relation == "<" and not part else "=",
            name=f"{quote_name(self.name)}.{quote_name(row)}.{quote_name(column)}{end}",
            where=self.place(row, column),
            cells=((self.name, row, f"{column}{end}"),),
            shown=printed_text,
        )

    def column(self, column: str, rows: Sequence[str], part: str = "", where: str = "") -> PrintedColumn:
        """The numbers of a column in these rows, under one name."""
        name = f"{quote_name(self.name)}[{where}].{quote_name(column)}" + (f".{part}" if part else "")
        return PrintedColumn(name=name, numbers=tuple(self.number(row, column, part) for row in rows))

    def line(self, row: str, columns: Sequence[str], part: str = "", where: str = "") -> PrintedColumn:
        """The numbers of a row in these columns, under one name."""
        name = f"{quote_name(self.name)}.{quote_name(row)}[{where}]" + (f".{part}" if part else "")
        return PrintedColumn(name=name, numbers=tuple(self.number(row, column, part) for column in columns))

    def place(self, row: str, column: str) -> str:
        """Where a cell stands: in the paper's source, or else in the table's file."""
        source_place = self.places.get((self._row_places[row], self._column_places[column]))
        return source_place or self.source or f"{self.name}.csv"

    @cached_property
    def _row_places(self) -> dict[str, int]:
        return {row: place for place, row in enumerate(self.rows)}

    @cached_property
    def _column_places(self) -> dict[str, int]:
        return {column: place for place, column in enumerate(self.columns)}

    @cached_property
    def mixed(self) -> frozenset[str]:
        """Columns whose cells have different units that multiply: their numbers are multiplied out."""
        columns = []
        for column in self.columns:
            units = {cell.unit for line in self.cells.values() if (cell := line[column]).number is not None}
            if len(units) > 1 and any(unit in THOUSANDS for unit in units):
                columns.append(column)
        return frozenset(columns)

    @cached_property
    def counts(self) -> frozenset[str]:
        """Columns of counts, whose numbers are not rounded: by their name, where every number in them is whole."""
        columns = []
        for column in self.columns:
            words = frozenset(re.findall(r"[^\W\d_]+", column.lower())) - _BESIDE
            cells = [line[column] for line in self.cells.values() if line[column].number is not None]
            if words and words <= COUNTS and all(map(_is_whole, cells)):
                columns.append(column)
        return frozenset(columns)

    @property
    def half_read(self) -> list[str]:
        """Cells that have digits but are not wholly a number, in columns that are mostly numbers, and columns whose
        cells all begin with digits that are mostly not read: not checked."""
        places = []
        for column in self.columns[1:]:
            filled_cells = {row: cell for row in self.rows if not (cell := self.cells[row][column]).empty}
            unread_cells = {row: cell for row, cell in filled_cells.items() if cell.number is None}
            all_begin = all(_BEGINS.match(cell.text) and not cell.values for cell in unread_cells.values())
            if 2 * sum(cell.number is not None for cell in filled_cells.values()) >= len(filled_cells):
                places += [
                    f"{self.place(row, column)}: {self.name}, {row}, {column}: {cell.text[:60]!r} is no number in full"
                    for row, cell in unread_cells.items()
                    if any(letter.isdigit() for letter in cell.text)
                ]
            elif all_begin:
                row, cell = next(iter(unread_cells.items()))
                places.append(
                    f"{self.place(row, column)}: {self.name}, {column}: {len(unread_cells)} of {len(filled_cells)} "
                    f"cells are no number in full, such as {cell.text[:60]!r}"
                )
        return places

    @cached_property
    def printed(self) -> list[tuple[str, str, str]]:
        """Every number of the table as (table, row, column), with its part."""
        return [
            (self.name, row, column + (f".{part}" if part else ""))
            for row in self.rows
            for column in self.columns
            for part in ("", *PARTS)
            if self.cells[row][column].part(part) is not None
        ]


def _is_whole(cell: PrintedCell) -> bool:
    """Whether a cell prints a whole number and nothing with it."""
    return (cell.number or "").isdigit() and not (cell.unit or cell.sd or cell.bracket or cell.bound)


def quote_name(name: str) -> str:
    """A name as expressions write it: as it is, or in quotes where it is more than letters, digits and `_`."""
    plain = name.isascii() and name.isidentifier()
    return name if plain else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def join_names(names: Sequence[str]) -> str:
    """Some of many names, for a message."""
    text = ", ".join(repr(name) for name in names[:8])
    return f"{text} and {len(names) - 8} more" if len(names) > 8 else text


def read_tables(folder: Path) -> list[PaperTable]:
    """Read every CSV of the folder itself, in the order of their names.

    Raises:
        UsageError: there is none, or one is not a table.
    """
    paths = sorted(path for path in folder.glob("*.csv") if path.is_file())
    if not paths:
        raise UsageError(
            f"{folder}: there is no table (*.csv) in it; type one (first row: columns, first column: rows), or read "
            "them from LaTeX: plumbline audit --from paper.tex FOLDER"
        )
    if len(paths) > TABLES:
        raise UsageError(f"{folder}: {len(paths)} tables, and at most {TABLES} are read; audit a part of them")
    for path in (*paths, folder / SOURCES):
        check_inside(path, folder)
    sources = read_paper_source(folder).tables
    tables = []
    for path in paths:
        tables.append(_read_table(path, sources.get(path.stem) or TableSource(where="")))
        if sum(len(table.rows) * len(table.columns) for table in tables) > CELLS:
            raise UsageError(f"{path}: more than {CELLS} cells with the tables before it; audit a part of the tables")
    return tables


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a path of a folder that a link leads out of: a folder that came from elsewhere may hold one.

    Raises:
        UsageError: it lies outside.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{path}: is a link that leads out of {folder}; put a copy there instead")


def read_text(path: Path) -> str:
    """Read a file of the folder as text, within the limit of its size.

    Raises:
        UsageError: it is too large, or no UTF-8.
    """
    with path.open("rb") as handle:
        content = handle.read(BYTES + 1)
    if len(content) > BYTES:
        raise UsageError(f"{path}: larger than {BYTES // 1_000_000} MB; that is no table of a paper")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is no UTF-8; save the file as UTF-8") from error


def _read_table(path: Path, source: TableSource) -> PaperTable:
    text = read_text(path)
    try:
        lines = [(number, list(map(unmark_formula, cells))) for number, cells in split_rows(path, text, ",")]
    except PlumblineError as error:
        raise UsageError(str(error)) from error
    head = next((line for _, line in lines if any(cell.strip() for cell in line)), None)
    if head is None:
        raise UsageError(f"{path}: empty; its first row names the columns")
    if len(head) == 1:
        raise UsageError(f"{path}: has one column: are its cells parted by commas? The first column names the rows")
    if len(head) > COLUMNS or len(lines) > ROWS:
        raise UsageError(f"{path}: {len(lines)} rows, {len(head)} columns; at most {ROWS} and {COLUMNS} are read")
    columns = _number_names([name.strip().strip("*").strip() or f"column {n}" for n, name in enumerate(head, start=1)])
    body: list[list[PrintedCell]] = []
    groups: list[int] = []
    group = 0
    for number, line in lines:
        if line is head:
            continue
        if not any(cell.strip() for cell in line):
            group += bool(groups) and groups[-1] == group
        elif len(line) != len(head):
            raise UsageError(f"{path}: line {number} ({line[0]!r}) has {len(line)} cells, and the head {len(head)}")
        else:
            body.append([read_cell(cell) for cell in line])
            groups.append(group)
    rows = _name_rows(body)
    _sign_differences(rows, columns, body)
    places = {}
    if source.sha256 == sha256_text(text) and len(source.cells) == len(rows):
        places = {(n, m): where for n, line in enumerate(source.cells) for m, where in enumerate(line)}
    return PaperTable(
        name=path.stem,
        columns=tuple(columns),
        rows=tuple(rows),
        cells={row: dict(zip(columns, line, strict=True)) for row, line in zip(rows, body, strict=True)},
        groups=tuple(groups),
        title=source.caption,
        titles=source.titles,
        source=source.where,
        places=places,
    )


def _sign_differences(rows: Sequence[str], columns: Sequence[str], body: list[list[PrintedCell]]) -> None:
    """Take the arrows of rows and columns of differences for signs; elsewhere they show which way is better.

    A line is of differences if its name states it, or one whose numbers all have a sign or an arrow before them and are
    small compared with the others.
    """
    usual = [[abs(Decimal(cell.number)) for cell in column if cell.number] for column in zip(*body, strict=True)]
    sizes = [median(values) if values else 0 for values in usual]
    lines = [(rows[place], [(place, column) for column in range(1, len(columns))]) for place in range(len(body))]
    lines += [(name, [(row, place) for row in range(len(body))]) for place, name in enumerate(columns) if place]
    for name, places in lines:
        pairs = [(body[row][column], sizes[column]) for row, column in places if body[row][column].number is not None]
        if not any(cell.arrow for cell, _ in pairs):
            continue
        change = is_change(name)
        small = all(2 * abs(Decimal(cell.number or 0)) < size for cell, size in pairs)
        are_signed = len(pairs) > 1 and all(cell.leading or (cell.signed and not cell.arrow) for cell, _ in pairs)
        if change or (small and (are_signed or change is None)):
            for row, column in places:
                body[row][column] = body[row][column].with_sign()


def _name_rows(body: Sequence[Sequence[PrintedCell]]) -> list[str]:
    """Names of rows: their first cell, the first two where only both together distinguish them, or a number added."""
    names = [line[0].text or "(no name)" for line in body]
    if len(set(names)) < len(names) and body and len(body[0]) > 1 and not any(line[1].number for line in body):
        double_names = [f"{line[0].text} / {line[1].text}" for line in body]
        if len(set(double_names)) == len(double_names):
            return double_names
    return _number_names(names)


def _number_names(names: Sequence[str]) -> list[str]:
    """Have equal names end in `#1`, `#2`, ... in their order."""
    times, counts = Counter(names), Counter[str]()
    unique_names = []
    for name in map(visible, names):
        counts[name] += 1
        unique_names.append(f"{name}#{counts[name]}" if times[name] > 1 else name)
    return unique_names
