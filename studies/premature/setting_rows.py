"""Makes rows of one setting each next to the control: what Tables 6, 7, 9, 10 and 12 have in common.

Source: premature study, appendices D to G and I; each table names its quantities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.tables.shared_columns import column_pair, label_columns, number_column
from plumbline.results.tables.table import REFERENCE, Cell, Column, list_published_cells

from .row_cells import RowCells
from .run_values import BASE, CONTROL, EARLY, FIFTH, Part, RunValues

#: (values, control, run) -> a number.
Read = Callable[[RunValues, str | None, str | None], float]


@dataclass(frozen=True, slots=True)
class SettingColumn:
    """A column. `relative`: it is a distance from the control, so that the control itself has none."""

    header: str
    format: str
    read: Read
    relative: bool = False


def probe_reader(probe: str, fraction: float, part: Part = "upper", column: str = "value") -> Read:
    """Reads a probe."""
    return lambda run_values, _, key: run_values.value(key, probe, fraction, part, column)


QUANTITIES = {
    "final_loss": SettingColumn("final loss", ".4f", lambda r, _, key: r.loss(key)),
    "final_ppl": SettingColumn("final ppl", ".3f", lambda r, _, key: r.perplexity(key)),
    "loss_minus_control": SettingColumn(
        "Δ loss", "+.4f", lambda r, control, key: r.loss(key) - r.loss(control), relative=True
    ),
    "ppl_minus_control": SettingColumn("Δ ppl", "+.3f", lambda r, control, key: -r.gain(control, key), relative=True),
    "ppl_reduction": SettingColumn(
        "ppl reduction", "+.4f", lambda r, control, key: r.gain(control, key), relative=True
    ),
    "tokens_saved_pct": SettingColumn(
        "tokens saved (%)", ".2f", lambda r, control, key: r.tokens_saved_percent(control, key), relative=True
    ),
    "upper_entropy_3pct": SettingColumn("entropy @3%", ".4f", probe_reader("entropy", EARLY)),
    "upper_logit_3pct": SettingColumn("logit @3%", ".4f", probe_reader("logit_mean_abs", EARLY)),
    "qk_displacement_3pct": SettingColumn("Q/K displacement @3%", ".3f", probe_reader("bilinear_displacement", EARLY)),
    "qk_relative_displacement_3pct": SettingColumn(
        "Q/K displacement @3%, relative to the start", ".3f", probe_reader("bilinear_relative", EARLY)
    ),
    "lower_copy_score_20pct": SettingColumn("lower-copy score @20%", ".4f", probe_reader("lower_copy", FIFTH, "model")),
    "lower_copy_score_chance": SettingColumn(
        "lower-copy score, chance level", ".4f", probe_reader("lower_copy", FIFTH, "model", "null")
    ),
    "upper_entropy_20pct": SettingColumn("entropy @20%", ".3f", probe_reader("entropy", FIFTH)),
    "locality_query": SettingColumn("λ_Q", ".3f", probe_reader("locality_query", EARLY)),
    "locality_query_chance": SettingColumn(
        "λ_Q of random P", ".3f", probe_reader("locality_query", EARLY, "upper", "null")
    ),
    "locality_key": SettingColumn("λ_K", ".3f", probe_reader("locality_key", EARLY)),
    "locality_key_chance": SettingColumn(
        "λ_K of random P", ".3f", probe_reader("locality_key", EARLY, "upper", "null")
    ),
    "locality_query_calibrated": SettingColumn(
        "λ_Q calibrated", ".3f", probe_reader("locality_query_calibrated", EARLY)
    ),
    "locality_key_calibrated": SettingColumn("λ_K calibrated", ".3f", probe_reader("locality_key_calibrated", EARLY)),
    "immature_energy_share": SettingColumn(
        "energy share R_P/‖X‖_F²", ".3f", probe_reader("projector_share", EARLY, "model")
    ),
    "immature_energy_share_chance": SettingColumn(
        "energy share of random P", ".3f", probe_reader("projector_share", EARLY, "model", "null")
    ),
    "projector_rank": SettingColumn("rank of P", ".1f", probe_reader("projector_rank", EARLY)),
}


def columns(names: dict[str, str], narrow: tuple[str, ...] = ()) -> list[Column]:
    """The columns of `rows`, without the facts."""
    all_columns = label_columns("setting", "Setting")
    for name, source in names.items():
        quantity = QUANTITIES[name]
        make = column_pair if source else _make_single_column
        all_columns += make(name, quantity.header, quantity.format, narrow=name in narrow)
    return all_columns


def _make_single_column(name: str, header: str, number_format: str, *, narrow: bool) -> list[Column]:
    return [number_column(name, header, number_format, narrow=narrow)]


def rows(
    run_values: RunValues, published: PrintedNumbers, table: str, runs: dict[str, str], names: dict[str, str]
) -> list[dict[str, Cell]]:
    """One row for each of `runs` (printed name -> method), all of the first seed.

    Args:
        names: our quantity -> the printed column; empty for one that is not printed.
    """
    printed_table, control = published.table(table), run_values.key(CONTROL)
    table_rows = []
    for setting, method in runs.items():
        key = run_values.key(method)
        row = RowCells(run_values, (key,), BASE)
        cells = {"setting": Cell(setting), "label": Cell(printed_table.loc[setting, "setting"])}
        for name in names:
            quantity = QUANTITIES[name]
            if quantity.relative and method == CONTROL:
                cells[name] = Cell(None, row.runs, word=REFERENCE)
            else:
                behind = (key, control) if quantity.relative else (key,)
                reason = "not reached" if name == "tokens_saved_pct" else "not read"
                cells[name] = row.cell(quantity.read(run_values, control, key), reason, behind)
        printed = {name: source for name, source in names.items() if source}
        table_rows.append(cells | list_published_cells(printed_table, setting, printed) | row.facts())
    return table_rows
