"""Reads single printed values: cells and columns of a table as numbers, and those of a paper's stated setup."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_number import PrintedColumn, PrintedNumber, exact
from plumbline.published.printed_numbers import PrintedNumbers


class PrintedTable:
    """A printed table; `PrintedNumbers.cells` gives its rows unique keys.

    Expressions write a cell as `table.row.column`; a column as `table[:].column` (all rows that print one), `table[a,
    b].column` (these rows) or `table[not a].column` (all rows but this one); a line as `table.row[:]` or, of these
    columns, `table.row[a, b]`.
    """

    def __init__(self, published: PrintedNumbers, name: str) -> None:
        self._published, self._name, self._file = published, name, f"{published.study}/{name}.csv"

    @cached_property
    def _cells(self) -> dict[str, dict[str, str]]:
        return self._published.cells(self._name)

    @property
    def rows(self) -> list[str]:
        """Keys of all rows, in the table's order."""
        return list(self._cells)

    def prints(self, row: str, column: str) -> bool:
        """Whether the paper prints something in the cell."""
        return self._find_text(row, column) != ""

    def texts(self, column: str) -> dict[str, str]:
        """The texts of a column by row, without the rows that print nothing there."""
        return {row: text for row in self.rows if (text := self._find_text(row, column))}

    def __getitem__(self, cell: tuple[str, str]) -> PrintedNumber:
        """A printed cell as a number.

        Raises:
            PlumblineError: there is no such cell, or nothing is printed there.
        """
        row, column = cell
        if not self.prints(row, column):
            raise PlumblineError(f"{self._file}: {row}.{column} is not printed")
        name = f"{self._name}.{row}.{column}"
        return PrintedNumber(text=self._find_text(row, column), name=name, cells=((self._name, row, column),))

    def column(self, column: str, rows: Sequence[str] | None = None) -> PrintedColumn:
        """The printed numbers of a column: those of `rows`, or of all rows that print one."""
        row_names = list(self.texts(column)) if rows is None else rows
        where = ":" if rows is None else ", ".join(rows)
        return self._make_column(column, row_names, where)

    def others(self, column: str, row: str) -> PrintedColumn:
        """The printed numbers of a column without that of one row."""
        return self._make_column(column, [name for name in self.texts(column) if name != row], f"not {row}")

    def line(self, row: str, columns: Sequence[str] | None = None) -> PrintedColumn:
        """The printed numbers of a row: of these columns, or of all in which it prints something."""
        names = [name for name in self._columns if self.prints(row, name)] if columns is None else columns
        where = ":" if columns is None else ", ".join(columns)
        return PrintedColumn(name=f"{self._name}.{row}[{where}]", numbers=tuple(self[row, column] for column in names))

    def _make_column(self, column: str, rows: Sequence[str], where: str) -> PrintedColumn:
        return PrintedColumn(name=f"{self._name}[{where}].{column}", numbers=tuple(self[row, column] for row in rows))

    @property
    def _columns(self) -> list[str]:
        return list(next(iter(self._cells.values()), ()))

    def _find_text(self, row: str, column: str) -> str:
        for kind, key, keys in (("row", row, self.rows), ("column", column, self._columns)):
            if key not in keys:
                raise PlumblineError(f"{self._file}: there is no {kind} {key!r}{nearest(key, keys)}")
        return self._cells[row][column]


class PrintedSetup:
    """Reader of single values of a paper's stated configuration, `published/setup.yaml`.

    The file is read when the first value is requested.

    Raises:
        PlumblineError: (from each method) there is no such entry or key, or its value is of another type.
    """

    def __init__(self, published: PrintedNumbers) -> None:
        self._published = published
        self._path = published.directory / "setup.yaml"

    @cached_property
    def _entries(self) -> dict[str, dict[str, Any]]:
        return self._published.setup()

    def whole(self, entry: str, key: str) -> int:
        """Read a whole number: a size or a count."""
        value = self._find_value(entry, key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise PlumblineError(f"{self._path}: {entry}.{key} is {value!r}; write a whole number")
        return value

    def number(self, entry: str, key: str) -> PrintedNumber:
        """Read a number of any kind, as an exact one."""
        value = self._find_value(entry, key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise PlumblineError(f"{self._path}: {entry}.{key} is {value!r}; write a number")
        return exact(value, f"{entry}.{key}")

    def flag(self, entry: str, key: str) -> bool:
        """Read a truth value: whether the paper's setup has something."""
        value = self._find_value(entry, key)
        if not isinstance(value, bool):
            raise PlumblineError(f"{self._path}: {entry}.{key} is {value!r}; write true or false")
        return value

    def _find_value(self, entry: str, key: str) -> Any:
        if entry not in self._entries:
            raise PlumblineError(f"{self._path}: there is no entry {entry!r}{nearest(entry, self._entries)}")
        values = self._entries[entry]
        if key not in values:
            raise PlumblineError(f"{self._path}: {entry} has no {key!r}{nearest(key, values)}")
        return values[key]
