"""Makes Table 3: what the intervention gains in each architecture, and how sharp its upper attention is early.

Source: premature study, section 5.5 and Table 3. Columns that the paper lacks: both perplexities, GEGLU's row (its
readouts are in section 5.6), the ratio of upper to lower scores, the lower-copy score with its null.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, column_pair, label_columns, make_table, number_column
from plumbline.results.tables.table import Cell, Table, list_published_cells
from plumbline.specs.study_config import Study

from ..row_cells import RowCells
from ..run_values import BASE, EARLY, RunValues, name_slowed_run

#: Architectures in the printed order; the one that Table 3 leaves to Table 4 comes last.
ARCHITECTURES = ("gpt", "gpt_rmsnorm", "gpt_biasless", "gpt_swiglu", "llama_layernorm", "llama", "gpt_geglu")

PRINTED = {"ppl_reduction": "ppl_reduction", "upper_logit_3pct": "logit_3pct", "upper_entropy_3pct": "entropy_3pct"}

COLUMNS = [
    *label_columns("architecture", "Architecture"),
    *column_pair("ppl_reduction", "ppl reduction", "+.4f", narrow=True),
    *column_pair("upper_logit_3pct", "logit @3%", ".3f", narrow=True),
    *column_pair("upper_entropy_3pct", "entropy @3%", ".3f", narrow=True),
    number_column("control_ppl", "control ppl", ".4f"),
    number_column("intervention_ppl", "intervention ppl", ".4f"),
    number_column("upper_over_lower_logit_3pct", "upper/lower logit @3%", ".2f"),
    number_column("lower_copy_score_3pct", "lower-copy score @3%", ".4f"),
    number_column("lower_copy_score_chance", "lower-copy score, chance level", ".4f"),
    *FACTS,
]

NOTES = [
    "One pair of runs for each architecture (the first seed); a reduction is control perplexity less the slowed run's.",
    "Readouts are of the control. Logit: mean |z| over visible entries; entropy: each row's over the log of its keys.",
]


def table3(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each architecture."""
    run_values, print3 = RunValues(frames, study), published.table("table3")
    rows = []
    for architecture in ARCHITECTURES:
        control, slow = run_values.key(architecture), run_values.key(name_slowed_run(architecture))
        row, alone = RowCells(run_values, (control, slow), BASE), (control,)
        upper, lower = (run_values.value(control, "logit_mean_abs", EARLY, part) for part in ("upper", "lower"))
        rows.append(
            {
                "architecture": Cell(architecture),
                "label": Cell(study.label(architecture)),
                "ppl_reduction": row.cell(run_values.gain(control, slow)),
                "upper_logit_3pct": row.cell(upper, keys=alone),
                "upper_entropy_3pct": row.cell(run_values.value(control, "entropy", EARLY), keys=alone),
                "control_ppl": row.cell(run_values.perplexity(control), keys=alone),
                "intervention_ppl": row.cell(run_values.perplexity(slow), keys=(slow,)),
                "upper_over_lower_logit_3pct": row.cell(upper / lower, keys=alone),
                "lower_copy_score_3pct": row.cell(run_values.value(control, "lower_copy", EARLY, "model"), keys=alone),
                "lower_copy_score_chance": row.cell(run_values.null(control, "lower_copy", EARLY, "model"), keys=alone),
            }
            | list_published_cells(print3, architecture, PRINTED)
            | row.facts()
        )
    return make_table(
        "table3",
        f"Component attribution at {study.scale_label(BASE)}.",
        study,
        key="architecture",
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        published=published.format_path("table3"),
    )
