"""Makes Table 4: the intervention in gated blocks, next to the single-branch one.

Source: premature study, section 5.6 and Table 4.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, column_pair, label_columns, make_table, number_column
from plumbline.results.tables.table import Cell, Table, list_published_cells
from plumbline.specs.study_config import Study

from ..row_cells import RowCells
from ..run_values import BASE, EARLY, RunValues, name_slowed_run

PRINTED = {
    "control_ppl": "control_ppl",
    "intervention_ppl": "intervention_ppl",
    "ppl_reduction": "ppl_reduction",
    "upper_entropy_3pct": "upper_entropy_3pct",
}

COLUMNS = [
    *label_columns("architecture", "Architecture"),
    *column_pair("control_ppl", "control ppl", ".4f", narrow=True),
    *column_pair("intervention_ppl", "intervention ppl", ".4f"),
    *column_pair("ppl_reduction", "ppl reduction", "+.4f", narrow=True),
    *column_pair("upper_entropy_3pct", "entropy @3%", ".3f", narrow=True),
    number_column("parameters", "parameters", ",d"),
    *FACTS,
]


def table4(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """GELU, SwiGLU and GEGLU."""
    run_values, print4 = RunValues(frames, study), published.table("table4")
    rows = []
    for architecture, label in print4["architecture"].items():
        control, slow = run_values.key(str(architecture)), run_values.key(name_slowed_run(str(architecture)))
        row, alone = RowCells(run_values, (control, slow), BASE), (control,)
        parameters = None if control is None else frames.runs.loc[control, "parameters"]
        rows.append(
            {
                "architecture": Cell(architecture),
                "label": Cell(label),
                "control_ppl": row.cell(run_values.perplexity(control), keys=alone),
                "intervention_ppl": row.cell(run_values.perplexity(slow), keys=(slow,)),
                "ppl_reduction": row.cell(run_values.gain(control, slow)),
                "upper_entropy_3pct": row.cell(run_values.value(control, "entropy", EARLY), keys=alone),
                "parameters": row.cell(_to_int(parameters), keys=alone),
            }
            | list_published_cells(print4, architecture, PRINTED)
            | row.facts()
        )
    return make_table(
        "table4",
        f"Gated feed-forward networks at {study.scale_label(BASE)}.",
        study,
        key="architecture",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "One pair of runs for each architecture (the first seed). Widths match in parameters but for the biases."
        ],
        published=published.format_path("table4"),
    )


def _to_int(value: float | None) -> int | None:
    return None if value is None or value != value else int(value)
