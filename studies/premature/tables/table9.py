"""Makes Table 9: releases at a fixed point, next to the release by the lower-copy score.

Source: premature study, appendix F and Table 9.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, make_table, number_column
from plumbline.results.tables.table import Cell, Column, Table
from plumbline.specs.study_config import Study

from .. import setting_rows
from ..release_rule_replay import read_release
from ..row_cells import RowCells
from ..run_values import BASE, CONTROL, INTERVENTION, RunValues

RUNS = {"control": CONTROL, "intervention": INTERVENTION, "fixed_3pct": "fixed_3pct", "fixed_6pct": "fixed_6pct"}

#: Our quantities and the printed columns.
NAMES = {name: name for name in ("final_ppl", "ppl_reduction", "tokens_saved_pct")}
NAMES |= {"upper_entropy_3pct": "entropy_3pct", "upper_logit_3pct": "logit_3pct"}


def table9(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Control, adaptive release, two fixed ones; and where each was released."""
    run_values = RunValues(frames, study)
    rows = setting_rows.rows(run_values, published, "table9", RUNS, NAMES)
    for cells in rows:
        key = run_values.key(RUNS[str(cells["setting"].value)])
        row, report = RowCells(run_values, (key,), BASE), read_release(run_values, key)
        released = report.get("fraction")
        control = cells["setting"].value == "control"
        cells["release_pct"] = (
            Cell(None, row.runs, word="never slowed")
            if control
            else row.cell(None if released is None else 100 * released, "not released")
        )
        cells["released_by"] = Cell("none" if control else str(report.get("why") or "unknown"), row.runs)
    release = [
        number_column("release_pct", "released at (%)", ".2f"),
        Column(name="released_by", header="released by", kind="fact"),
    ]
    return make_table(
        "table9",
        f"Fixed releases at {study.scale_label(BASE)}.",
        study,
        key="setting",
        columns=[*setting_rows.columns(NAMES, ("final_ppl", "ppl_reduction", "tokens_saved_pct")), *release, *FACTS],
        rows=rows,
        notes=["Runs of the first seed, with the same multiplier and ramp. A release is forced at the window's end."],
        published=published.format_path("table9"),
    )
