"""Computes the rows of the audit: a printed number, the expression that gives it, its inputs, verdict and class."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.expression import Given, collect_cells, lift, select_named_inputs
from plumbline.published.interval_arithmetic import Cell, high, low, meet, touch, without_noise
from plumbline.published.printed_cells import PrintedSetup, PrintedTable
from plumbline.published.printed_number import PrintedNumber
from plumbline.published.printed_numbers import PrintedNumbers, ProseNumber

MATCH, WITHIN, EDGE, MISMATCH = "match", "within rounding", "knife edge", "mismatch"

#: What each verdict means; printed above the audit.
VERDICTS = {
    MATCH: "the inputs taken exactly as printed give a number that rounds to the printed one",
    WITHIN: "not so, but some numbers that round to the printed inputs do",
    EDGE: "only the ends of the two intervals meet: every input and the result are at the very end of their rounding",
    MISMATCH: "no numbers that round to the printed inputs give one that rounds to the printed result",
}

#: What a row rests on, as its code states.
Basis = Literal["follows", "copy", "other interpretation", "outside source"]

CONTRADICTION = "contradiction"

#: What each class means. A mismatch of a row that follows or is a copy is a contradiction; nobody writes that down.
CLASSES = {
    "follows": "the paper's own numbers and definitions determine the printed number",
    "copy": "the paper prints the number twice",
    CONTRADICTION: "one of these two that fails",
    "other interpretation": "the row uses one of several meanings of the text: a mismatch is evidence against it",
    "outside source": "an input is from outside the paper: a mismatch may come from there",
}

#: What a recomputed number is.
VALUE, MIDDLE = "value", "middle of a range"

COLUMNS = [
    "study",
    "id",
    "evidence_kind",
    "finding",
    "quantity",
    "source",
    "cells",
    "formula",
    "inputs",
    "reads",
    "printed",
    "recomputed",
    "recomputed_kind",
    "recomputed_low",
    "recomputed_high",
    "refuses",
    "verdict",
    "explanation",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRow:
    """A computed check of a printed number; `COLUMNS` describes the fields.

    `recomputed` is the value at the printed inputs, or the middle of a range that no printed number narrows
    (`recomputed_kind` states which). `refuses` is a number of a row of a range that would be a mismatch in place of the
    printed one: what the row can catch. `cells` are where the checked number stands, and `reads` where the formula's
    do, as `write_cells` writes them.
    """

    study: str
    id: str
    basis: Basis
    quantity: str
    source: str
    cells: str
    formula: str
    inputs: str
    reads: str
    printed: str
    recomputed: float
    recomputed_kind: str
    recomputed_low: float
    recomputed_high: float
    refuses: str
    verdict: str

    @property
    def kind(self) -> str:
        """The row's class, one of `CLASSES`; a mismatch of what must follow is a contradiction."""
        broken = self.verdict == MISMATCH and self.basis in ("follows", "copy")
        return CONTRADICTION if broken else self.basis


def write_cells(cells: Iterable[Cell]) -> str:
    """Write printed cells as expressions name them: table.row.column, with semicolons between them."""
    return "; ".join(".".join(cell) for cell in cells)


def verdict(printed: PrintedNumber, at_printed_inputs: object, over_roundings: object) -> str:
    """Judge a printed number: match, within rounding, knife edge or mismatch, as `VERDICTS` defines them.

    Args:
        at_printed_inputs: interval of the recomputed number for the inputs as printed.
        over_roundings: interval of the recomputed number for all inputs that round to the printed ones.
    """
    if meet(printed.interval(), at_printed_inputs):
        return MATCH
    if touch(printed.interval(), over_roundings):
        return EDGE
    return WITHIN if meet(printed.interval(), over_roundings) else MISMATCH


class AuditRows:
    """Collects the rows of one paper's audit and hands out its printed numbers.

    `settings` is the paper's stated configuration; `read` holds the printed cells that some row uses or tests, and
    `cannot_fail` the rows of a range that name nothing they refuse, or what they hold for.
    """

    def __init__(self, study: str, published: PrintedNumbers) -> None:
        self.study = study
        self.settings = PrintedSetup(published)
        self.rows: list[AuditRow] = []
        self.read: set[Cell] = set()
        self.cannot_fail: list[AuditRow] = []
        self._published = published
        self._tables: dict[str, PrintedTable] = {}

    @cached_property
    def _prose(self) -> dict[str, ProseNumber]:
        return self._published.prose()

    def table(self, name: str) -> PrintedTable:
        """A printed table, whose cells and columns are numbers for the audit's formulas.

        Raises:
            PlumblineError: (when a cell is first read) the paper prints no such table.
        """
        return self._tables.setdefault(name, PrintedTable(self._published, name))

    def prose(self, name: str) -> PrintedNumber:
        """A number printed in running text, by its id in prose.csv.

        Raises:
            PlumblineError: prose.csv has no such id.
        """
        try:
            number = self._prose[name]
        except KeyError:
            raise PlumblineError(f"{self.study}/prose.csv has no entry {name!r}{nearest(name, self._prose)}") from None
        cell = ("prose", name, "printed")
        return PrintedNumber(text=number.text, exact=number.exact, name=name, where=number.source, cells=(cell,))

    def check(
        self,
        id: str,
        quantity: str,
        source: str,
        printed: PrintedNumber,
        formula: Given,
        *,
        basis: Basis = "follows",
        note: str = "",
        refuses: str = "",
    ) -> None:
        """Compare a printed number with the result of a formula, and keep the row.

        Args:
            id: the row's name; findings refer to it.
            quantity: what the printed number is.
            source: where it is printed.
            printed: the number as printed.
            formula: an expression of other printed numbers and stated settings.
            basis: what the row rests on; see `CLASSES`.
            note: what the formula's text does not state by itself; it follows the formula in the row.
            refuses: what a slip could print in place of the number, and the row would not hold for. A study's row whose
                formula gives a range has to say it.

        Raises:
            PlumblineError: the name is taken, or the formula does not give one finite number.
        """
        if any(row.id == id for row in self.rows):
            raise PlumblineError(f"{self.study}: two audit rows are called {id!r}")
        expression = lift(formula)
        middle, ranges = expression.one()
        recomputed = (low(middle) + high(middle)) / 2
        if not math.isfinite(recomputed):
            raise PlumblineError(f"{self.study}: the audit row {id!r} does not give a number")
        scale = max(abs(low(ranges)), abs(high(ranges)))
        cells_read = collect_cells(expression)
        self.rows.append(
            AuditRow(
                study=self.study,
                id=id,
                basis=basis,
                quantity=quantity,
                source=source,
                cells=write_cells(printed.cells),
                formula=f"{expression.text}, {note}" if note else expression.text,
                inputs="; ".join(f"{entry.name}={entry.shown}" for entry in select_named_inputs(expression)),
                reads=write_cells(sorted(cells_read)),
                printed=str(printed),
                recomputed=without_noise(recomputed, scale),
                recomputed_kind=MIDDLE if expression.spans else VALUE,
                recomputed_low=without_noise(low(ranges), scale),
                recomputed_high=without_noise(high(ranges), scale),
                refuses=refuses,
                verdict=verdict(printed, middle, ranges),
            )
        )
        refused = refuses and verdict(replace(printed, text=refuses), middle, ranges) == MISMATCH
        if not refused and (expression.spans or refuses):
            self.cannot_fail.append(self.rows[-1])
        self.read.update(printed.cells, cells_read)

    def copy(self, id: str, quantity: str, source: str, printed: PrintedNumber, original: PrintedNumber) -> None:
        """Check a number that is printed twice: the shorter text must be the longer one, rounded; as long, the same."""
        if _last_digit(printed) <= _last_digit(original):
            printed, original = printed.exactly(), original.exactly()
        self.check(id, quantity, source, printed, original, basis="copy")


def _last_digit(number: PrintedNumber) -> int:
    """The power of ten of a number's last printed digit."""
    return int(Decimal(number.text).as_tuple().exponent)
