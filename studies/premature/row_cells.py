"""Makes the cells of a row from its runs, with the word for a value that they do not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.core.run_files import COMPLETED
from plumbline.results.tables.shared_columns import fact_cells
from plumbline.results.tables.table import Cell, number_cell

from .run_values import RunValues


@dataclass(frozen=True, slots=True)
class RowCells:
    """Makes the cells of one row: its runs are those of every cell, and give the word where there is no value."""

    run_values: RunValues
    keys: tuple[str | None, ...]
    scale: str

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are expected."""
        return tuple(key for key in self.keys if key is not None)

    def cell(self, value: float | int | None, otherwise: str = "not read", keys: Iterable[str | None] = ()) -> Cell:
        """A value of the row's runs, or of those of them that are named; `otherwise` is why whole runs have none."""
        behind = tuple(keys) or self.keys
        word = self.run_values.word(*behind, otherwise=otherwise)
        return number_cell(value, word, tuple(key for key in behind if key is not None))

    def facts(self, seeds: int | None = None) -> dict[str, Cell]:
        """The FACTS cells; `seeds`: how many seeds have a value (by default one, if all of the row's runs are)."""
        values = self.run_values
        outcomes = [values.outcome(key) for key in self.keys]
        complete = int(all(outcome == COMPLETED for outcome in outcomes)) if seeds is None else seeds
        return fact_cells(values.frames, values.study, self.scale, self.runs, outcomes=outcomes, seeds=complete)
