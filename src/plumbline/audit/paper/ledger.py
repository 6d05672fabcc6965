"""Collects the rows, findings and relations of a folder's audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.audit.audit_rows import MISMATCH, AuditRows
from plumbline.audit.expression import Given
from plumbline.audit.findings import Finding
from plumbline.audit.interval_arithmetic import Cell
from plumbline.audit.printed_number import PrintedNumber
from plumbline.audit.printed_numbers import PrintedNumbers
from plumbline.core.errors import UsageError

#: Most rows of one audit.
MOST = 5_000


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A row of a relation: its key, what it is, what is printed, and what gives it."""

    key: str
    what: str
    printed: PrintedNumber
    formula: Given


class Ledger:
    """Collects the rows and findings of a folder's audit."""

    def __init__(self, folder: Path) -> None:
        self.rows = AuditRows(folder.resolve().name or "paper", PrintedNumbers(folder))
        self.findings: list[Finding] = []
        self.relations: list[str] = []
        self.dropped: list[str] = []
        self.tested: set[Cell] = set()
        #: Cells that a check of the audit file tests: no relation tests them again.
        self.told: frozenset[Cell] = frozenset()
        self._ids: list[str] = []

    def add(
        self, id: str, what: str, where: str, printed: PrintedNumber, formula: Given, basis: str = "follows"
    ) -> str:
        """Check one number; returns the row's verdict."""
        if len(self.rows.rows) >= MOST:
            raise UsageError(f"{self.rows.study}: more than {MOST} rows; audit a part of the tables")
        self.rows.check(id, what, where, printed, formula, basis=basis)  # type: ignore[arg-type]
        self.tested.update(printed.cells)
        return self.rows.rows[-1].verdict

    def free_id(self, id: str) -> str:
        """The name, or with a number after it where it is taken."""
        count = sum(other == id or other.startswith(f"{id}#") for other in self._ids)
        self._ids.append(id if not count else f"{id}#{count + 1}")
        return self._ids[-1]

    def hold(self, table: str, line: str, words: str, rows: Iterable[RelationRow], verb: str = "agree") -> None:
        """Check every row of a relation that was found, and make those that do not agree one finding."""
        left = [row for row in rows if not self.told.intersection(row.printed.cells)]
        if not left:
            return
        id, broken, count = self.free_id(f"{table}.{line}"), [], 0
        for row in left:
            count += 1
            if self.add(f"{id}.{row.key}", row.what, row.printed.where, row.printed, row.formula) == MISMATCH:
                broken.append(f"{id}.{row.key}")
        held = f"{count - len(broken)} of {count} {verb}"
        self.relations.append(f"{table}: {words}: {held}")
        if broken:
            self.find(id, f"{words}: {held}.", broken)

    def find(self, id: str, text: str, rows: Sequence[str]) -> None:
        """Keep a finding over rows that do not hold."""
        self.findings.append(Finding(id=id, bears_on="detail", text=text, rows=tuple(rows)))
