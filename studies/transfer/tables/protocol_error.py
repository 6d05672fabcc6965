"""Makes a table of what the protocol itself is worth: winners where nothing works, and gains found, by number of
reference seeds.

Source: transfer study, section 3.3. Not a table of the paper.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import label_columns, make_table, number_column
from plumbline.results.tables.table import PRESET, Cell, Column, Table
from plumbline.specs.study_config import Study
from plumbline.stats.protocol_error import WORLDS, list_protocols, standard_error

from ..protocol_error import ASSUMED, CORRECTIONS, COUNTS, GAINS, STATISTICS, compute_error_rates

#: Where the numbers are from.
SOURCE = "plumbline.stats.protocol_error"

COLUMNS = [
    *label_columns("protocol", "Statistic, correction"),
    Column(name="n_seeds", header="seeds", kind="label", format="d", narrow=True),
    Column(name="n_methods", header="methods", kind="label", format="d", readable=False),
    number_column("prob_false_difference", "false difference", ".1%", narrow=True),
    number_column("prob_false_improvement", "false improvement", ".1%", narrow=True),
    *(
        number_column(f"power_at_{gain:g}_sigma", f"power at {gain:g}σ", ".1%", narrow=gain in (1, 3, 5))
        for gain in GAINS
    ),
    PRESET,
]


def protocol_error(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each number of reference seeds, statistic and correction."""
    rows = []
    for n, statistic, correction in list_protocols(COUNTS):
        rates = compute_error_rates(statistic, correction, study.m, n)
        row = {
            "protocol": Cell(f"{statistic}_{correction}_{n}"),
            "label": Cell(f"{STATISTICS[statistic]}, {CORRECTIONS[correction]}"),
            "n_seeds": Cell(n),
            "n_methods": Cell(study.m),
            "prob_false_difference": Cell(rates.survivor, source=SOURCE),
            "prob_false_improvement": Cell(rates.improver, source=SOURCE),
            "preset": Cell(study.preset),
        }
        rows.append(
            row | {f"power_at_{gain:g}_sigma": Cell(share, source=SOURCE) for gain, share in rates.power.items()}
        )
    return make_table(
        "protocol_error",
        f"What the protocol is worth: {study.m} methods, one seed each, against 2 to {max(COUNTS)} reference seeds.",
        study,
        key="protocol",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"{ASSUMED} A share's standard error is at most {standard_error(0.5, WORLDS):.2%}.",
            "False difference, false improvement: no method does anything, and at least one is called "
            "different, or better, at a corrected p of at most 0.05. Power: one method has the gain, in units of the "
            "true spread, the others nothing, and that method is called better.",
            "Normal z takes mean and spread of the reference as known; prediction t pays for their being estimates.",
        ],
        exact=True,
    )
