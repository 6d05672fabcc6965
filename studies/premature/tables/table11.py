"""Makes Table 11: the comparison of Table 1 at the larger scale.

Source: premature study, appendix H and Table 11. Columns that the paper lacks: what appendix H says in words of 3 %
of training.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, make_table, number_column
from plumbline.results.tables.table import Cell, Table
from plumbline.specs.study_config import Study

from ..paired_runs import PairedRuns, Quantity, columns
from ..run_values import EARLY, LARGE, Part, RunValues

#: Our quantities and the names of the printed columns.
PRINTED: dict[Quantity, str] = {
    "loss": "final_loss",
    "ppl": "final_ppl",
    "tokens_to_control_loss_b": "tokens_to_target_b",
}

#: Early readouts: probe and part.
EARLY_READ: dict[str, tuple[str, Part]] = {
    "upper_entropy_3pct": ("entropy", "upper"),
    "upper_logit_3pct": ("logit_mean_abs", "upper"),
    "lower_copy_score_3pct": ("lower_copy", "model"),
}

NOTES = [
    "Mean and sample standard deviation over seeds; differences are paired. Readouts at 3 % are means over seeds.",
    "A lower-copy score means something beside its null only, what uniform attention scores on the same text.",
]


def table11(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Control, intervention, and their paired difference at the larger scale."""
    run_values = RunValues(frames, study)
    paired = PairedRuns(run_values, LARGE)
    rows = paired.rows(published, "table11", PRINTED)
    for cells in rows:
        setting = str(cells["setting"].value)
        row = paired.row(setting)
        for name, (probe, part) in EARLY_READ.items():
            cells[name] = row.cell(_average_early_readout(paired, setting, probe, part))
        null = _average_early_readout(paired, setting, "lower_copy", "model", "null")
        cells["lower_copy_score_chance"] = Cell(None, word="see above") if setting == "difference" else row.cell(null)
    early = [
        number_column("upper_entropy_3pct", "upper entropy @3%", ".3f"),
        number_column("upper_logit_3pct", "upper logit @3%", ".3f"),
        number_column("lower_copy_score_3pct", "lower-copy score @3%", ".4f"),
        number_column("lower_copy_score_chance", "lower-copy score, chance level", ".4f"),
    ]
    return make_table(
        "table11",
        f"The comparison of Table 1 at {study.scale_label(LARGE)}.",
        study,
        key="setting",
        columns=[*columns(PRINTED), *early, *FACTS],
        rows=rows,
        notes=NOTES,
        published=published.format_path("table11"),
    )


def _average_early_readout(paired: PairedRuns, setting: str, probe: str, part: Part, column: str = "value") -> float:
    """Mean over seeds of a readout at 3 %, or the difference of two means."""
    if setting == "difference":
        return _average_early_readout(paired, "intervention", probe, part, column) - _average_early_readout(
            paired, "control", probe, part, column
        )
    values = [paired.run_values.value(key, probe, EARLY, part, column) for key in paired.keys(setting)]
    return sum(values) / len(values)
