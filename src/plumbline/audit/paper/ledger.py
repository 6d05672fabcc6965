"""Collects the rows, findings and relations of a folder's audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from plumbline.audit.audit_rows import MISMATCH, AuditRows
from plumbline.audit.findings import Finding
from plumbline.audit.paper.evidence import find_level, meets
from plumbline.audit.paper.lines import SMALL, Ends, Line
from plumbline.core.errors import UsageError
from plumbline.published.expression import Given
from plumbline.published.interval_arithmetic import Cell
from plumbline.published.printed_number import PrintedNumber
from plumbline.published.printed_numbers import PrintedNumbers

#: What a row rests on whose relation no name states: the numbers propose it, so that it accuses nobody.
UNSTATED = "other interpretation"

#: Why a relation accuses nobody that chance can have made.
CHANCE = "among so many relations that were looked for, one agrees as often by chance"

#: Most rows of one audit.
MOST = 5_000


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A row of a relation: its key, what it is, what is printed, what gives it, and whether a name states it.

    `doubt`: what else may be meant where it does not hold, so that it accuses nobody; or nothing. `cell`: where it
    stands, if what is printed is no number of the cell but its mark.
    """

    key: str
    quantity: str
    printed: PrintedNumber
    formula: Given
    stated: bool = True
    doubt: str = ""
    cell: Cell | None = None


@dataclass(frozen=True, slots=True)
class _HeldRelation:
    """A relation whose rows are to be checked: where it is, what it says, and the chance that it agrees of itself."""

    table: str
    line: str
    description: str
    rows: tuple[RelationRow, ...]
    verb: str
    chance: float


class Ledger:
    """Collects the rows and findings of a folder's audit."""

    def __init__(self, folder: Path) -> None:
        self.rows = AuditRows(folder.resolve().name or "paper", PrintedNumbers(folder))
        self.findings: list[Finding] = []
        self.relations: list[str] = []
        self.dropped: list[str] = []
        #: Those of the dropped that a name states and that so many rows agree with that the others may be wrong.
        self.doubted: list[str] = []
        self.tested: set[Cell] = set()
        #: The cell of each row, by the row's id.
        self.cells: dict[str, Cell] = {}
        #: Cells that a check of the audit file tests: no relation tests them again.
        self.stated_cells: frozenset[Cell] = frozenset()
        #: How many relations that a name states were looked for.
        self.searches = 0
        #: Relations that a name states and that hold in a table: those of the same names in the others are this one.
        self.known_relations: set[str] = set()
        self._held: list[_HeldRelation] = []
        self._ids: list[str] = []

    def add(
        self,
        id: str,
        quantity: str,
        where: str,
        printed: PrintedNumber,
        formula: Given,
        basis: str = "follows",
        cell: Cell | None = None,
    ) -> str:
        """Check one number, which stands in a cell (by default the printed number's own); returns the verdict."""
        if len(self.rows.rows) >= MOST:
            raise UsageError(f"{self.rows.study}: more than {MOST} rows; audit a part of the tables")
        self.rows.check(id, quantity, where, printed, formula, basis=basis)  # type: ignore[arg-type]
        self.tested.update(printed.cells)
        if cell or printed.cells:
            self.cells[id] = cell or printed.cells[0]
        return self.rows.rows[-1].verdict

    def free_id(self, id: str) -> str:
        """Return the name, with a number after it if it is taken."""
        count = sum(used_id == id or used_id.startswith(f"{id}#") for used_id in self._ids)
        self._ids.append(id if not count else f"{id}#{count + 1}")
        return self._ids[-1]

    def hold(
        self,
        table: str,
        line: str,
        description: str,
        rows: Iterable[RelationRow],
        verb: str = "agree",
        chance: float = 0.0,
    ) -> None:
        """Keep a relation, whose rows `settle` checks; `chance`: that so many of them agree of themselves."""
        open_rows = tuple(row for row in rows if not self.stated_cells.intersection(row.printed.cells))
        if open_rows:
            self._held.append(_HeldRelation(table, line, description, open_rows, verb, chance))
            self.tested.update(cell for row in open_rows for cell in row.printed.cells)

    def settle(self) -> None:
        """Check every row of the relations that hold, and make those of one that do not agree one finding.

        Where so many were looked for in the paper that chance can have made one, it accuses nobody.
        """
        level = find_level([relation.chance for relation in self._held if relation.rows[0].stated], self.searches)
        for relation in self._held:
            id, broken, reasons = self.free_id(f"{relation.table}.{relation.line}"), [], []
            for row in relation.rows:
                doubt = row.doubt or (CHANCE if row.stated and relation.chance > level else "")
                basis = "follows" if row.stated and not doubt else UNSTATED
                label = f"{id}.{row.key}"
                if (
                    self.add(label, row.quantity, row.printed.where, row.printed, row.formula, basis, row.cell)
                    == MISMATCH
                ):
                    broken.append(label)
                    reasons += [f" {row.key}: {doubt}."] * bool(doubt)
            count = len(relation.rows)
            share = f"{count - len(broken)} of {count} {relation.verb}"
            self.relations.append(f"{relation.table}: {relation.description}: {share}")
            if broken:
                self.find(id, f"{relation.description}: {share}.{''.join(reasons)}", broken)
        self._held.clear()

    def drop(
        self, table: str, description: str, target: Line, computed: Mapping[str, Ends], *, doubted: bool = False
    ) -> None:
        """Name a relation that is not checked, and what it gives in the rows that do not agree with it.

        One that a check of the audit file makes already is not named. `doubted`: so many rows agree with it that the
        others may be wrong.
        """
        keys = [key for key in computed if key in target.numbers]
        if not keys or all(self.stated_cells.intersection(target.numbers[key].cells) for key in keys):
            return
        off = [key for key in keys if not meets(target.ends[key], computed[key])]
        examples = [
            f"{key} (printed {target.numbers[key]}, gives {_format_result(target, key, computed)})" for key in off[:3]
        ]
        more = f" and {len(off) - 3} more" if len(off) > 3 else ""
        few = "too few to tell" if len(keys) < SMALL else "which can be chance"
        result = f"{len(keys) - len(off)} of {len(keys)} agree, {few}" + (
            f"; not: {', '.join(examples)}{more}" if off else ""
        )
        self.dropped.append(f"{table}: {description}: {result}")
        if doubted:
            self.doubted.append(self.dropped[-1])

    def find(self, id: str, text: str, rows: Sequence[str]) -> None:
        """Keep a finding over rows that do not hold."""
        self.findings.append(Finding(id=id, bears_on="detail", text=text, rows=tuple(rows)))


def _format_result(target: Line, key: str, computed: Mapping[str, Ends]) -> str:
    """Format what a relation gives, with the digits of the printed number, or more if only they distinguish the two."""
    printed, value = target.numbers[key], computed[key][1]
    places = max(0, -int(Decimal(printed.text).as_tuple().exponent))
    texts = (f"{value:.{places + more}f}" for more in range(4))
    return next((text for text in texts if float(text) != printed.value), f"{value:.6g}")
