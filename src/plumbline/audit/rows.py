"""One row of the audit: a printed number, the formula that gives it, its inputs, and the computed verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from plumbline.audit import parameters, statistics, training
from plumbline.audit.formulas import FORMULAS
from plumbline.audit.interval import Number, exact, high, low, meet
from plumbline.audit.settings import Settings
from plumbline.cli import PlumblineError, nearest
from plumbline.results.published import ProseNumber, Published

#: Importing these registers their formulas.
REGISTERED = (parameters, statistics, training)

MATCH, WITHIN, MISMATCH = "match", "within rounding", "mismatch"

#: What each verdict means; printed above the audit.
VERDICTS = {
    MATCH: "the inputs taken exactly as printed give a number that rounds to the printed one",
    WITHIN: "they do not, but some numbers that round to the printed inputs do",
    MISMATCH: "no numbers that round to the printed inputs give one that rounds to the printed result",
}

COLUMNS = [
    "document",
    "id",
    "what",
    "source",
    "formula",
    "inputs",
    "printed",
    "recomputed",
    "low",
    "high",
    "verdict",
    "explanation",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A check that has been computed; see `COLUMNS`. `recomputed` is the value at the printed inputs."""

    document: str
    id: str
    what: str
    source: str
    formula: str
    inputs: str
    printed: str
    recomputed: float
    low: float
    high: float
    verdict: str


def verdict(printed: Number, at_printed_inputs: object, over_roundings: object) -> str:
    """Match, within rounding or mismatch, as `VERDICTS` defines them."""
    if meet(printed.interval(), at_printed_inputs):
        return MATCH
    return WITHIN if meet(printed.interval(), over_roundings) else MISMATCH


class Ledger:
    """Collects the rows of one document and hands out its printed numbers; `settings` is its stated configuration."""

    def __init__(self, document: str, published: Published) -> None:
        self.document = document
        self.settings = Settings(published)
        self.rows: list[Row] = []
        self._published = published
        self._tables: dict[str, pd.DataFrame] = {}

    @cached_property
    def _prose(self) -> dict[str, ProseNumber]:
        return self._published.prose()

    def table(self, name: str) -> pd.DataFrame:
        """A printed table as text."""
        if name not in self._tables:
            self._tables[name] = self._published.table(name).replace("", None)
        return self._tables[name]

    def cell(self, table: str, row: str, column: str, *, exact: bool = False) -> Number:
        """A printed cell as a number."""
        text = self.table(table).loc[row, column]
        if not isinstance(text, str):
            raise PlumblineError(f"{self.document}/{table}.csv: {row}.{column} is not printed")
        return Number(text=text, exact=exact, where=f"{table}.{row}.{column}")

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
        return Number(text=number.text, exact=number.exact, where=number.source)

    def check(
        self,
        id: str,
        what: str,
        source: str,
        formula: str,
        printed: Number,
        inputs: Mapping[str, Number | int | float | Sequence[Number]],
    ) -> None:
        """Recompute `printed` from `inputs` by the named formula and keep the row.

        A number that is not a `Number` is a stated setting or a constant: exact. A sequence is one input
        with many printed values.
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
        self.rows.append(
            Row(
                document=self.document,
                id=id,
                what=what,
                source=source,
                formula=formula,
                inputs="; ".join(f"{name}={_show(value)}" for name, value in given.items()),
                printed=str(printed),
                recomputed=recomputed,
                low=low(ranges),
                high=high(ranges),
                verdict=verdict(printed, middles, ranges),
            )
        )

    def copy(self, id: str, what: str, source: str, printed: Number, original: Number) -> None:
        """A number that is printed twice: the shorter text must be the longer one, rounded."""
        self.check(id, what, source, "same number", printed, {"x": original})


def _apply(method: Callable[[Number], Any], value: Number | list[Number]) -> Any:
    return [method(number) for number in value] if isinstance(value, list) else method(value)


def _show(value: Number | list[Number]) -> str:
    return " ".join(str(number) for number in value) if isinstance(value, list) else str(value)
