"""Finds the printed numbers that no row of the audit reads, and reads the list of those that nothing can test.

A printed number is a cell of a CSV in `published/` that holds a number, outside the first column, which names the rows
(`PrintedNumbers.cells`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from plumbline.core.structs import ClosedStruct
from plumbline.published.interval_arithmetic import Cell
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.specs.field_types import Text
from plumbline.specs.yaml_files import read_struct

_Patterns = Annotated[tuple[Text, ...], Meta(min_length=1)]


class UncheckedNumbers(ClosedStruct, frozen=True, kw_only=True):
    """An entry of `unchecked_numbers.yaml`: patterns of the printed cells that no row of the audit reads, and the
    reason."""

    file: Text
    rows: _Patterns = ("*",)
    columns: _Patterns = ("*",)
    reason: Text

    def holds(self, cell: Cell) -> bool:
        """Whether the entry's patterns match the cell (file, row, column)."""
        file, row, column = cell
        return (
            file == self.file
            and any(fnmatchcase(row, pattern) for pattern in self.rows)
            and any(fnmatchcase(column, pattern) for pattern in self.columns)
        )


class UncheckedFile(ClosedStruct, frozen=True):
    """studies/<study>/unchecked_numbers.yaml."""

    unchecked: list[UncheckedNumbers]


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditCoverage:
    """How many of a paper's printed numbers the audit reads, and which it does not.

    Attributes:
        printed: number of printed numbers.
        listed: reason -> cells that no row reads for that reason.
        missing: cells that no row reads and that no entry of `unchecked_numbers.yaml` lists.
        idle: entries of `unchecked_numbers.yaml` that match no unread cell.
    """

    printed: int
    listed: dict[str, list[Cell]] = field(default_factory=dict)
    missing: list[Cell] = field(default_factory=list)
    idle: list[UncheckedNumbers] = field(default_factory=list)

    @property
    def read(self) -> int:
        """Number of printed numbers that some row uses as an input or tests."""
        return self.printed - len(self.missing) - sum(map(len, self.listed.values()))


def list_printed_cells(published: PrintedNumbers) -> list[Cell]:
    """List every printed number of a paper, as (file, row, column), in the order of its files."""
    cells = []
    for name in published.tables():
        for row, texts in published.cells(name).items():
            cells += [(name, row, column) for column, text in texts.items() if _is_number(text)]
    if published.path("prose").is_file():
        cells += [("prose", name, "printed") for name in published.prose()]
    return cells


def read_unchecked(path: Path) -> list[UncheckedNumbers]:
    """Read `unchecked_numbers.yaml`, the list of printed numbers that no row reads; empty if there is no file.

    Raises:
        PlumblineError: the file has an unknown key or a value of the wrong type.
    """
    return list(read_struct(path, UncheckedFile).unchecked) if path.is_file() else []


def measure_coverage(
    published: PrintedNumbers, read_cells: Collection[Cell], entries: Collection[UncheckedNumbers]
) -> AuditCoverage:
    """Compare a paper's printed numbers with the `read_cells` of the audit and with those that `entries` list."""
    cells = list_printed_cells(published)
    unchecked = [cell for cell in cells if cell not in read_cells]
    result = AuditCoverage(printed=len(cells))
    for cell in unchecked:
        reason = next((entry.reason for entry in entries if entry.holds(cell)), None)
        if reason is None:
            result.missing.append(cell)
        else:
            result.listed.setdefault(reason, []).append(cell)
    result.idle.extend(entry for entry in entries if not any(entry.holds(cell) for cell in unchecked))
    return result


def _is_number(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False
