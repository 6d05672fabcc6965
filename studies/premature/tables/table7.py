"""Makes Table 7: every parameter at half the rate, next to slowing the upper half's early queries and keys.

Source: premature study, appendix E and Table 7; the readouts at 20 % of training are in the appendix's text.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, make_table
from plumbline.results.tables.table import Column, Table, make_printed_cell, make_published_column
from plumbline.specs.study_config import Study

from .. import setting_rows
from ..run_values import BASE, CONTROL, INTERVENTION, RunValues

RUNS = {"control": CONTROL, "intervention": INTERVENTION, "global_half_lr": "global_half_lr"}

#: Our quantities and the printed columns; those at 20 % stand in a claim instead.
NAMES = {
    "final_loss": "final_loss",
    "final_ppl": "final_ppl",
    "loss_minus_control": "delta_loss",
    "ppl_minus_control": "delta_ppl",
}
NAMES |= {"lower_copy_score_20pct": "", "lower_copy_score_chance": "", "upper_entropy_20pct": ""}

#: Where the claim `readout_20pct` has our quantities, by row.
IN_THE_TEXT = {
    "intervention": {
        "lower_copy_score_20pct": "selective_lower_copy_score",
        "upper_entropy_20pct": "selective_upper_entropy",
    },
    "global_half_lr": {
        "lower_copy_score_20pct": "half_lr_lower_copy_score",
        "upper_entropy_20pct": "half_lr_upper_entropy",
    },
}


def table7(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Control, intervention, half rate."""
    run_values, printed = RunValues(frames, study), published.claim("readout_20pct")
    rows = setting_rows.rows(run_values, published, "table7", RUNS, NAMES)
    for cells in rows:
        names = IN_THE_TEXT.get(str(cells["setting"].value), {})
        for name in ("lower_copy_score_20pct", "upper_entropy_20pct"):
            cells[f"{name}_published"] = make_printed_cell(f"{printed[names[name]]:g}" if names else NOT_PRINTED)
    return make_table(
        "table7",
        f"The global learning rate as a control at {study.scale_label(BASE)}.",
        study,
        key="setting",
        columns=[*_columns(), *FACTS],
        rows=rows,
        notes=[
            "Runs of the first seed. The null beside a lower-copy score is what uniform attention gives on that text."
        ],
        published=published.format_path("table7"),
    )


def _columns() -> list[Column]:
    columns = []
    for column in setting_rows.columns(NAMES, ("final_loss", "final_ppl", "ppl_minus_control")):
        columns.append(column)
        if column.name in ("lower_copy_score_20pct", "upper_entropy_20pct"):
            columns.append(make_published_column(column.name, column.header))
    return columns
