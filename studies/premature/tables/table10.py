"""Makes Table 10: other multipliers on the upper half's early queries and keys.

Source: premature study, appendix G and Table 10.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, make_table, setting_pair
from plumbline.results.tables.table import Cell, Table, list_published_cells
from plumbline.specs.study_config import Study

from .. import setting_rows
from ..run_values import BASE, CONTROL, INTERVENTION, RunValues

RUNS = {"control": CONTROL, "mult_0p5": "mult_0p5", "mult_0p25": INTERVENTION, "mult_0p125": "mult_0p125"}

#: Our quantities and the printed columns.
NAMES = {"final_ppl": "final_ppl", "upper_entropy_3pct": "upper_entropy_3pct", "upper_logit_3pct": "upper_logit_3pct"}
NAMES |= {"qk_displacement_3pct": "qk_displacement_3pct", "qk_relative_displacement_3pct": ""}


def table10(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Multipliers from 1 (the control) down."""
    run_values, print10 = RunValues(frames, study), published.table("table10")
    rows = setting_rows.rows(run_values, published, "table10", RUNS, NAMES)
    for cells in rows:
        setting = str(cells["setting"].value)
        cells["lr_multiplier"] = _multiplier(run_values, run_values.key(RUNS[setting]))
        cells |= list_published_cells(print10, setting, {"lr_multiplier": "lr_multiplier"})
    return make_table(
        "table10",
        f"A sweep of the multiplier at {study.scale_label(BASE)}.",
        study,
        key="setting",
        columns=[
            *setting_pair("lr_multiplier", "learning rate multiplier", "g"),
            *setting_rows.columns(NAMES, tuple(NAMES)[:4]),
            *FACTS,
        ],
        rows=rows,
        notes=[
            "Runs of the first seed. Displacement: Frobenius norm of each head's W_Q^T W_K less its start, mean over "
            "the upper half's heads."
        ],
        published=published.format_path("table10"),
    )


def _multiplier(run_values: RunValues, key: str | None) -> Cell:
    """What a run's spec multiplies the rate by; 1 where nothing intervenes."""
    if key is None:
        return Cell(None, word="no such run")
    chosen = run_values.study.runs[key].spec.interventions
    return Cell(float(next((entry["multiplier"] for entry in chosen if "multiplier" in entry), 1.0)), (key,))
