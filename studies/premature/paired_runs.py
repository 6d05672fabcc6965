"""Pairs control and intervention by seed: losses, perplexities and tokens to the control's final loss.

Source: premature study, Tables 1 and 11 (mean and sample standard deviation; differences of paired seeds).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers, read_printed
from plumbline.results.tables.shared_columns import column_pair, label_columns
from plumbline.results.tables.table import Cell, Column, make_printed_cell
from plumbline.stats.paired_runs import compute_paired_difference
from plumbline.stats.sample_spread import sample_deviation

from .row_cells import RowCells
from .run_values import RunValues

#: A billion tokens, the paper's unit.
BILLION = 1e9

Quantity = Literal["loss", "ppl", "tokens_to_control_loss_b"]
Pair = tuple[str | None, str | None]

#: Header and format of each quantity.
SHOWN: dict[Quantity, tuple[str, str]] = {
    "loss": ("loss", ".4f"),
    "ppl": ("ppl", ".4f"),
    "tokens_to_control_loss_b": ("tokens to control's loss (B)", ".4g"),
}

#: The rows: which side of a pair, or their difference.
SETTINGS: dict[str, int | None] = {"control": 0, "intervention": 1, "difference": None}


@dataclass(frozen=True)
class PairedRuns:
    """The pairs of a scale; series are by seed, NaN if there is no value."""

    run_values: RunValues
    scale: str

    @cached_property
    def pairs(self) -> dict[int, Pair]:
        """Seed -> keys of control and intervention."""
        return {seed: (control, other) for seed, control, other in self.run_values.pairs(self.scale)}

    def keys(self, setting: str) -> tuple[str | None, ...]:
        """The runs behind a row."""
        side = SETTINGS[setting]
        keys = [key for pair in self.pairs.values() for key in (pair if side is None else pair[side : side + 1])]
        return tuple(keys) or (None,)

    def values(self, quantity: Quantity, side: int) -> pd.Series:
        """A quantity of one side, 0 for the control; `tokens_to_control_loss_b` are billions to the final loss of the
        same seed's control, which the control itself reaches with its last token."""
        return pd.Series({seed: self._value(quantity, pair, side) for seed, pair in self.pairs.items()}, dtype=float)

    def _value(self, quantity: Quantity, pair: Pair, side: int) -> float:
        control, key = pair[0], pair[side]
        if quantity == "loss":
            return self.run_values.loss(key)
        if quantity == "ppl":
            return self.run_values.perplexity(key)
        level = self.run_values.loss(control)
        if key is None or math.isnan(level):
            return math.nan
        return (self.run_values.tokens_to(key, level) if side else self.run_values.budget(key)) / BILLION

    def moments(self, quantity: Quantity, setting: str) -> tuple[float, float, int]:
        """Mean, sample standard deviation (NaN of one value) and number of values."""
        side = SETTINGS[setting]
        if side is None:
            difference = compute_paired_difference(self.values(quantity, 1), self.values(quantity, 0))
            return difference.mean, difference.sigma, difference.n
        values = self.values(quantity, side).dropna()
        return float(values.mean()), sample_deviation(values), len(values)

    @property
    def saved(self) -> pd.Series:
        """Percent of the budget that the intervention did not need, of the seeds at which it got there."""
        return pd.Series(
            {seed: self.run_values.tokens_saved_percent(*pair) for seed, pair in self.pairs.items()}, dtype=float
        ).dropna()

    @cached_property
    def no_mean(self) -> str:
        """Words in place of a mean of tokens where some intervention never gets to its control's loss, though its runs
        are whole: a mean of the others alone would look like a saving where most lose. Empty if all get there."""
        whole = int((self.values("loss", 0) + self.values("loss", 1)).count())
        reached = int(self.values("tokens_to_control_loss_b", 1).count())
        return "" if reached == whole else f"reached by {reached} of {whole}" if reached else "not reached"

    @property
    def budget(self) -> float:
        """Tokens of a run of this scale; NaN if there is none."""
        return next((float(self.run_values.budget(key)) for key, _ in self.pairs.values() if key), math.nan)

    def row(self, setting: str) -> RowCells:
        """The maker of a row's cells."""
        return RowCells(self.run_values, self.keys(setting), self.scale)

    def rows(self, published: PrintedNumbers, table: str, names: dict[Quantity, str]) -> list[dict[str, Cell]]:
        """Control, intervention and their paired difference; `names`: our quantity -> the printed columns' name,
        without ``_mean`` and ``_std``."""
        printed_table = published.table(table)
        rows = []
        for setting in SETTINGS:
            row = self.row(setting)
            cells = {"setting": Cell(setting), "label": Cell(printed_table.loc[setting, "setting"])}
            for name, source in names.items():
                mean, sigma, n = self.moments(name, setting)
                is_budget = name == "tokens_to_control_loss_b" and setting == "control"
                no_spread = "one seed" if n == 1 else "not reached"
                if name == "tokens_to_control_loss_b" and not is_budget and self.no_mean:
                    mean, sigma, no_spread = math.nan, math.nan, self.no_mean
                cells[name] = row.cell(mean, self.no_mean or "not reached")
                cells[f"{name}_sd"] = Cell(None, word="given") if is_budget else row.cell(sigma, no_spread)
                cells[f"{name}_published"] = make_printed_cell(read_printed(printed_table, setting, f"{source}_mean"))
                cells[f"{name}_sd_published"] = make_printed_cell(read_printed(printed_table, setting, f"{source}_std"))
            rows.append(cells | row.facts(self.moments("loss", setting)[2]))
        return rows


def columns(names: dict[Quantity, str]) -> list[Column]:
    """The columns of `PairedRuns.rows`, without the facts."""
    all_columns = label_columns("setting", "Model")
    for name in names:
        header, number_format = SHOWN[name]
        spread = f"{name}_sd"
        all_columns += column_pair(name, header, number_format, narrow=True, noise=spread) + column_pair(
            spread, f"± {header}", number_format
        )
    return all_columns
