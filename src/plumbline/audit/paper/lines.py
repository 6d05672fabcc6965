"""Takes a table as lines of numbers, along its columns or along its rows, with their ends as plain floats.

Relations are looked for with these; what is found is then computed again with the audit's own intervals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from statistics import median

from plumbline.audit.paper.line_types import (
    LEVELS,
    SCALED_UNITS,
    UNCERTAINTY,
    YEAR,
    LineType,
    find_direction,
    find_type,
    find_unit,
)
from plumbline.audit.paper.names import NONLINEAR, has_footnote, kind_of, says, words_of
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.audit.paper.printed_cell import PrintedCell
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import THOUSANDS, PrintedNumber

#: Lowest, printed and highest value of a number.
Ends = tuple[float, float, float]

#: Most lines, and places of a line, that are checked.
LINES, PLACES = 60, 400


def ends_of(number: PrintedNumber) -> Ends:
    """The ends of a printed number, with its printed value between them."""
    return _compute_ends(number.text, number.relation, number.exact)


@lru_cache(50_000)
def _compute_ends(text: str, relation: str, exact: bool) -> Ends:
    number = PrintedNumber(text=text, relation=relation, exact=exact)
    interval = number.interval()
    return low(interval), number.value, high(interval)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A column (or a row) of a table: its name, and what it prints by the name of the row (or column).

    Attributes:
        place: its number in the table, from 0.
        numbers: printed numbers, without bounds such as "< 0.01", as rounded: nothing states what is a count.
        cells: every cell, also those without a number.
    """

    name: str
    place: int
    numbers: dict[str, PrintedNumber]
    cells: dict[str, PrintedCell]

    @cached_property
    def ends(self) -> dict[str, Ends]:
        """Ends of each number by its key."""
        return {key: ends_of(number) for key, number in self.numbers.items()}

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
        return says(self.name, pattern)

    @cached_property
    def kind(self) -> str:
        """What its numbers are: "date", "%", "count", or empty if its name, units and numbers do not show it."""
        if self.numbers and all(YEAR.fullmatch(number.text) for number in self.numbers.values()):
            return "date"
        return kind_of(self.name)

    @cached_property
    def name_unit(self) -> str:
        """The unit that its name ends in."""
        return find_unit(self.name)

    @cached_property
    def direction(self) -> int:
        """1 where its name says that more is better, -1 where less is, else 0."""
        return find_direction(self.name)

    def unit(self, key: str) -> str:
        """The unit of its number there, of units that multiply and of percent points one for all."""
        unit = self.cells[key].unit
        return "1" if unit in THOUSANDS else "%" if unit in ("pp", "pt", "pts") else unit

    def scale(self, key: str) -> str:
        """The unit of time or memory that its number there has, or else its name; empty: none."""
        unit = self.cells[key].unit or self.name_unit
        return unit if SCALED_UNITS.fullmatch(unit) else ""

    def has_footnote(self, key: str) -> bool:
        """Whether a footnote's mark stands at the number there, or in a name of its row or column."""
        return self.cells[key].has_footnote or has_footnote(key) or has_footnote(self.name)

    @property
    def signed(self) -> bool:
        """Whether a sign is printed in one of its cells; an arrow after each says only that it is better."""
        cells = [cell for cell in self.cells.values() if cell.number is not None]
        arrows = {0 if cell.leading or "-" in (cell.number or "") else cell.arrow for cell in cells}
        are_alike = len(arrows) == 1 and arrows != {0}
        return not are_alike and any(cell.signed for cell in cells)


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

    def name_place(self, line: str, key: str) -> tuple[str, str]:
        """The row and the column of a line's place."""
        return (key, line) if self.along == "column" else (line, key)

    @cached_property
    def linear(self) -> tuple[str, ...]:
        """Keys but those of a spread or of dates: they are not the difference or mean of such. Along a row neither are
        ratios, ranks or p."""
        return tuple(
            key
            for key in self.keys
            if not (self._is_spread(key) or self._is_date(key)) and not (self.along == "row" and says(key, NONLINEAR))
        )

    def _is_spread(self, key: str) -> bool:
        """Whether a key is of spreads; in brackets alone, a row with a name of its own (not "Foo#2") may be costs."""
        has_own_name = not re.search(r"#\d+$", key)
        return self.types[key].type == UNCERTAINTY and not (self.types[key].bracketed and has_own_name)

    def _is_date(self, key: str) -> bool:
        """Whether a key is of dates; DATE with decimals is a kind of named entities, whose scores they are."""
        texts = (line.numbers[key].text for line in self.lines if key in line.numbers)
        return kind_of(key) == "date" and not (key.isupper() and any("." in text for text in texts))

    @cached_property
    def counts(self) -> frozenset[str]:
        """Keys whose names say that they count."""
        return frozenset(key for key in self.keys if kind_of(key) == "count")

    @cached_property
    def _linear_keys_by_bits(self) -> dict[int, tuple[str, ...]]:
        """Linear keys by the bits of those that are among them, as far as they were asked for."""
        return {}

    @cached_property
    def _bits(self) -> dict[int, int]:
        """For each line, by its place, a bit for each linear key at which it prints a number."""
        return {line.place: sum(1 << n for n, key in enumerate(self.linear) if key in line.ends) for line in self.lines}

    def list_shared(self, lines: Sequence[Line]) -> tuple[str, ...]:
        """The linear keys at which each of these lines prints a number."""
        bits = -1
        for line in lines:
            bits &= self._bits[line.place]
        if bits not in self._linear_keys_by_bits:
            self._linear_keys_by_bits[bits] = tuple(key for n, key in enumerate(self.linear) if bits >> n & 1)
        return self._linear_keys_by_bits[bits]

    @cached_property
    def types(self) -> dict[str, LineType]:
        """The type of each key, which is a line across these."""
        cells = {key: [line.cells[key] for line in self.lines if key in line.numbers] for key in self.keys}
        return {key: find_type(key, cells[key], partial(self.is_small, key)) for key in self.keys}

    @cached_property
    def level_keys(self) -> tuple[str, ...]:
        """Keys whose numbers are their own: no changes, spreads, means, totals or ranks of others."""
        return tuple(key for key in self.linear if self.types[key].type in LEVELS)

    def is_small(self, key: str) -> bool:
        """Whether most numbers of a key are less than half of what is usual in their lines."""
        smaller = []
        for line in self.lines:
            other_sizes = [abs(ends[1]) for other_key, ends in line.ends.items() if other_key != key]
            if key in line.ends and other_sizes:
                smaller.append(abs(line.ends[key][1]) < median(other_sizes) / 2)
        return 2 * sum(smaller) > len(smaller)


#: A table of fewer rows (or columns) is checked also where a line prints one number alone.
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
        lines=_make_lines(table, lines, 1 if len(table.rows) < SMALL else 2),
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
        lines=_make_lines(table, lines, 1 if len(columns) < SMALL else 2),
        keys=tuple(columns),
        groups=dict.fromkeys(columns, 0),
    )


def _make_lines(
    table: PaperTable, items: Sequence[tuple[str, int, dict[str, PrintedCell], dict[str, tuple[str, str]]]], least: int
) -> tuple[Line, ...]:
    lines: list[Line] = []
    for name, place, cells, where in items:
        numbers = {
            key: table.number(*where[key]).as_rounded()
            for key, cell in cells.items()
            if cell.number is not None and not cell.bound
        }
        if len(numbers) >= least and len(lines) < LINES:
            lines.append(Line(name=name, place=place, numbers=numbers, cells=cells))
    return tuple(lines)
