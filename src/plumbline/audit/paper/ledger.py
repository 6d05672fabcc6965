"""Collects the rows, findings and relations of a folder's audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.expression import Given
from plumbline.audit.findings import Finding
from plumbline.audit.printed_number import PrintedNumber
from plumbline.audit.printed_numbers import PrintedNumbers
from plumbline.core.errors import UsageError

#: Most rows of one audit.
MOST = 5_000


class Ledger:
    """Collects the rows and findings of a folder's audit."""

    def __init__(self, folder: Path) -> None:
        self.rows = AuditRows(folder.resolve().name or "paper", PrintedNumbers(folder))
        self.findings: list[Finding] = []
        self.relations: list[str] = []
        self.dropped: list[str] = []
        self._ids: list[str] = []

    def add(
        self, id: str, what: str, where: str, printed: PrintedNumber, formula: Given, basis: str = "follows"
    ) -> str:
        """Check one number; returns the row's verdict."""
        if len(self.rows.rows) >= MOST:
            raise UsageError(f"{self.rows.study}: more than {MOST} rows; audit a part of the tables")
        self.rows.check(id, what, where, printed, formula, basis=basis)  # type: ignore[arg-type]
        return self.rows.rows[-1].verdict

    def free_id(self, id: str) -> str:
        """The name, or with a number after it where it is taken."""
        count = sum(other == id or other.startswith(f"{id}#") for other in self._ids)
        self._ids.append(id if not count else f"{id}#{count + 1}")
        return self._ids[-1]

    def find(self, id: str, text: str, rows: Sequence[str]) -> None:
        """Keep a finding over rows that do not hold."""
        self.findings.append(Finding(id=id, bears_on="detail", text=text, rows=tuple(rows)))
