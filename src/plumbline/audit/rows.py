"""One row of the audit: a printed number, the formula that gives it, its inputs, and the computed verdict and class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from plumbline.audit import counting, parameters, statistics, training
from plumbline.audit.coverage import keyed
from plumbline.audit.formulas import FORMULAS
from plumbline.audit.interval import Cell, Number, exact, high, low, meet, touch, without_noise
from plumbline.audit.published import ProseNumber, Published
from plumbline.audit.settings import Settings
from plumbline.core.errors import PlumblineError, nearest

#: Importing these registers their formulas.
REGISTERED = (counting, parameters, statistics, training)

MATCH, WITHIN, EDGE, MISMATCH = "match", "within rounding", "knife edge", "mismatch"

#: What each verdict means; printed above the audit.
VERDICTS = {
    MATCH: "the inputs taken exactly as printed give a number that rounds to the printed one",
    WITHIN: "they do not, but some numbers that round to the printed inputs do",
    EDGE: "only the ends of the two intervals meet: every input and the result lie at the very end of their rounding",
    MISMATCH: "no numbers that round to the printed inputs give one that rounds to the printed result",
}

#: What a row rests on, as its code says.
Basis = Literal["follows", "copy", "other reading", "outside source"]

CONTRADICTION = "contradiction"

#: What each class means. A mismatch of a row that follows or is a copy is a contradiction; nobody writes that down.
CLASSES = {
    "follows": "the document's own numbers and definitions say what the printed number must be",
    "copy": "the document prints the number twice",
    CONTRADICTION: "one of these two that does not hold",
    "other reading": "the row takes one of several meanings that the text leaves open: a mismatch speaks against it",
    "outside source": "an input is not the document's own: a mismatch may lie there",
}

#: What a recomputed number is.
VALUE, MIDDLE = "value", "middle of a range"

COLUMNS = [
    "document",
    "id",
    "class",
    "finding",
    "what",
    "source",
    "formula",
    "inputs",
    "printed",
    "recomputed",
    "recomputed_is",
    "low",
    "high",
    "verdict",
    "explanation",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A check that has been computed; see `COLUMNS`. `recomputed` is the value at the printed inputs, or the middle of
    the range of a formula that gives one of exact inputs too (`recomputed_is`)."""

    document: str
    id: str
    basis: Basis
    what: str
    source: str
    formula: str
    inputs: str
    printed: str
    recomputed: float
    low: float
    high: float
    verdict: str

    @property
    def recomputed_is(self) -> str:
        """What `recomputed` is: a value, or the middle of a range that no printed number narrows."""
        return MIDDLE if FORMULAS[self.formula].spans else VALUE

    @property
    def kind(self) -> str:
        """Its class, one of `CLASSES`."""
        broken = self.verdict == MISMATCH and self.basis in ("follows", "copy")
        return CONTRADICTION if broken else self.basis


def verdict(printed: Number, at_printed_inputs: object, over_roundings: object) -> str:
    """Match, within rounding, knife edge or mismatch, as `VERDICTS` defines them."""
    if meet(printed.interval(), at_printed_inputs):
        return MATCH
    if touch(printed.interval(), over_roundings):
        return EDGE
    return WITHIN if meet(printed.interval(), over_roundings) else MISMATCH


class Ledger:
    """Collects the rows of one document and hands out its printed numbers; `settings` is its stated configuration.

    `read` are the printed cells that some row feeds on or tests.
    """

    def __init__(self, document: str, published: Published) -> None:
        self.document = document
        self.settings = Settings(published)
        self.rows: list[Row] = []
        self.read: set[Cell] = set()
        self._published = published
        self._tables: dict[str, pd.DataFrame] = {}

    @cached_property
    def _prose(self) -> dict[str, ProseNumber]:
        return self._published.prose()

    def table(self, name: str) -> pd.DataFrame:
        """A printed table as text, on the keys that `coverage.keyed` gives its rows."""
        if name not in self._tables:
            self._tables[name] = keyed(self._published.table(name)).replace("", None)
        return self._tables[name]

    def prints(self, table: str, row: str, column: str) -> bool:
        """Whether something stands in the cell."""
        return isinstance(self.table(table).loc[row, column], str)

    def cell(self, table: str, row: str, column: str, *, exact: bool = False) -> Number:
        """A printed cell as a number."""
        if not self.prints(table, row, column):
            raise PlumblineError(f"{self.document}/{table}.csv: {row}.{column} is not printed")
        text = str(self.table(table).loc[row, column])
        return Number(text=text, exact=exact, where=f"{table}.{row}.{column}", cells=((table, row, column),))

    def column(self, table: str, column: str, rows: Sequence[str] | None = None) -> list[Number]:
        """Several printed cells of a column; default all rows that print one."""
        names = self.table(table)[column].dropna().index if rows is None else rows
        return [self.cell(table, name, column) for name in names]

    def prose(self, name: str) -> Number:
        """A number printed in running text."""
        try:
            number = self._prose[name]
        except KeyError:
            raise PlumblineError(
                f"{self.document}/prose.csv has no entry {name!r}{nearest(name, self._prose)}"
            ) from None
        return Number(text=number.text, exact=number.exact, where=number.source, cells=(("prose", name, "printed"),))

    def check(
        self,
        id: str,
        what: str,
        source: str,
        formula: str,
        printed: Number,
        inputs: Mapping[str, Number | int | float | Sequence[Number]],
        *,
        basis: Basis = "follows",
    ) -> None:
        """Recompute `printed` from `inputs` by the named formula and keep the row.

        A number that is not a `Number` is a stated setting or a constant: exact. A sequence is one input
        with many printed values. `basis` says what the row rests on; see `CLASSES`.
        """
        if any(row.id == id for row in self.rows):
            raise PlumblineError(f"{self.document}: two audit rows are called {id!r}")
        if formula not in FORMULAS:
            raise PlumblineError(f"{self.document}: {id}: there is no formula {formula!r}{nearest(formula, FORMULAS)}")
        function = FORMULAS[formula].function
        given = {
            name: value if isinstance(value, Number) else list(value) if isinstance(value, Sequence) else exact(value)
            for name, value in inputs.items()
        }
        middles = function(*(_apply(Number.middle, value) for value in given.values()))
        ranges = function(*(_apply(Number.interval, value) for value in given.values()))
        recomputed = (low(middles) + high(middles)) / 2
        if not math.isfinite(recomputed):
            raise PlumblineError(f"{self.document}: the audit row {id!r} does not give a number")
        if FORMULAS[formula].whole and recomputed != round(recomputed):
            raise PlumblineError(
                f"{self.document}: the audit row {id!r} counts {recomputed}, which is not a whole number"
            )
        scale = max(abs(low(ranges)), abs(high(ranges)))
        self.rows.append(
            Row(
                document=self.document,
                id=id,
                basis=basis,
                what=what,
                source=source,
                formula=formula,
                inputs="; ".join(f"{name}={_show(value)}" for name, value in given.items()),
                printed=str(printed),
                recomputed=without_noise(recomputed, scale),
                low=without_noise(low(ranges), scale),
                high=without_noise(high(ranges), scale),
                verdict=verdict(printed, middles, ranges),
            )
        )
        for number in (printed, *_flat(given.values())):
            self.read.update(number.cells)

    def copy(self, id: str, what: str, source: str, printed: Number, original: Number) -> None:
        """A number that is printed twice: the shorter text must be the longer one, rounded."""
        self.check(id, what, source, "same number", printed, {"x": original}, basis="copy")


def _apply(method: Callable[[Number], Any], value: Number | list[Number]) -> Any:
    return [method(number) for number in value] if isinstance(value, list) else method(value)


def _flat(values: Iterable[Number | list[Number]]) -> Iterator[Number]:
    for value in values:
        yield from value if isinstance(value, list) else [value]


def _show(value: Number | list[Number]) -> str:
    return " ".join(str(number) for number in value) if isinstance(value, list) else str(value)
