"""Takes a table as lines of numbers, along its columns or along its rows, with their ends as plain floats.

Relations are looked for with these; what is found is then computed again with the audit's own intervals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from plumbline.audit.interval_arithmetic import high, low
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.audit.paper.printed_cell import PrintedCell
from plumbline.audit.printed_number import PrintedNumber

#: Lowest, printed and highest value of a number.
Ends = tuple[float, float, float]

#: Most lines, and places of a line, that are looked at.
LINES, PLACES = 60, 400


@dataclass(frozen=True, kw_only=True)
class Line:
    """A column (or a row) of a table: its name, and what it prints by the name of the row (or column).

    Attributes:
        place: its number in the table, from 0.
        numbers: printed numbers, without bounds such as "< 0.01"; each as rounded, for nobody says what is a count.
        cells: every cell, also those without a number.
    """

    name: str
    place: int
    numbers: dict[str, PrintedNumber]
    cells: dict[str, PrintedCell]

    @cached_property
    def ends(self) -> dict[str, Ends]:
        """Ends of each number by its key."""
        found = {}
        for key, number in self.numbers.items():
            interval = number.interval()
            found[key] = (low(interval), number.value, high(interval))
        return found

    @cached_property
    def words(self) -> str:
        """The words of the name."""
        return words_of(self.name)

    @cached_property
    def units(self) -> frozenset[str]:
        """Units of its numbers."""
        return frozenset(cell.unit for cell in self.cells.values() if cell.number is not None and cell.unit)

    def says(self, pattern: str) -> bool:
        """Whether the name has a word that the pattern is."""
        return _says(self.name, pattern)


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A table along its columns or rows.

    Attributes:
        along: "column" or "row", as sentences call a line.
        keys: names of the places of a line, in order.
        groups: group of each key.
    """

    table: PaperTable
    along: str
    lines: tuple[Line, ...]
    keys: tuple[str, ...]
    groups: dict[str, int]

    @cached_property
    def linear(self) -> tuple[str, ...]:
        """Keys but those whose name is a spread: it is not the difference or mean of spreads. Along a row neither are
        ratios, ranks or p."""
        other = SPREAD if self.along == "column" else f"{SPREAD}|{NONLINEAR}"
        return tuple(key for key in self.keys if not _says(key, other))

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Keys but those whose name is a spread or a change of others."""
        return tuple(key for key in self.linear if not _says(key, CHANGE))


#: Words of a name that is a spread, of one whose mean over rows is not that of its parts, and of one that is a change.
SPREAD = "std|sd|stdev|stddev|se|stderr|sem|variance|var|ci|range|iqr"
NONLINEAR = "ratio|speedup|rank|p|z|t|x|×|factor|rel|relative|#|n|ppl|perplexity|improvement|reduction"
CHANGE = (
    "δ|delta|deltas|diff|difference|differences|gain|gains|improv|improvement|improvements|change|changes|gap|drop|"
    "increase|decrease|degradation"
)


def _says(name: str, pattern: str) -> bool:
    return re.search(rf" (?:{pattern}) ", words_of(name)) is not None


def words_of(name: str) -> str:
    """A name in small letters, a blank around each word; of signs δ, %, × and # are left."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    return f" {' '.join(re.findall(r'[a-z0-9]+|[δ%×#]', apart))} "


#: A table of fewer rows (or columns) is looked at also where a line prints one number alone.
SMALL = 3


def columns_of(table: PaperTable, skip: Sequence[str] = ()) -> Lines:
    """The columns that print at least two numbers, or one in a small table."""
    lines = []
    for place, column in enumerate(table.columns):
        cells = {row: table.cells[row][column] for row in table.rows[:PLACES]}
        if place and column not in skip:
            lines.append((column, place, cells, {row: (row, column) for row in cells}))
    return Lines(
        table=table,
        along="column",
        lines=_lines(table, lines, 1 if len(table.rows) < SMALL else 2),
        keys=table.rows[:PLACES],
        groups=dict(zip(table.rows, table.groups, strict=True)),
    )


def rows_of(table: PaperTable, skip: Sequence[str] = ()) -> Lines:
    """The rows that print at least two numbers, or one in a small table."""
    columns = [column for column in table.columns[1:] if column not in skip][:PLACES]
    lines = []
    for place, row in enumerate(table.rows):
        cells = {column: table.cells[row][column] for column in columns}
        lines.append((row, place, cells, {column: (row, column) for column in columns}))
    return Lines(
        table=table,
        along="row",
        lines=_lines(table, lines, 1 if len(columns) < SMALL else 2),
        keys=tuple(columns),
        groups=dict.fromkeys(columns, 0),
    )


def _lines(
    table: PaperTable, given: Sequence[tuple[str, int, dict[str, PrintedCell], dict[str, tuple[str, str]]]], least: int
) -> tuple[Line, ...]:
    found: list[Line] = []
    for name, place, cells, where in given:
        shown = {
            key: table.number(*where[key]).rounded()
            for key, cell in cells.items()
            if cell.number is not None and not cell.bound
        }
        if len(shown) >= least and len(found) < LINES:
            found.append(Line(name=name, place=place, numbers=shown, cells=cells))
    return tuple(found)
