"""Makes Table 1: the GPT-style control and the intervention over three seeds; loss, perplexity, tokens saved.

Source: premature study, section 5.1 and Table 1.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, column_pair, make_table
from plumbline.results.tables.table import Cell, Table, list_published_cells
from plumbline.specs.study_config import Study
from plumbline.stats.sample_spread import sample_deviation

from ..paired_runs import PairedRuns, Quantity, columns
from ..run_values import BASE, RunValues

#: Our quantities and the names of the printed columns.
PRINTED: dict[Quantity, str] = {"loss": "loss", "ppl": "ppl", "tokens_to_control_loss_b": "tokens_to_baseline_loss_b"}
SAVED = {
    "tokens_saved_m": "token_saving_m_mean",
    "tokens_saved_pct": "token_saving_pct_mean",
    "tokens_saved_pct_sd": "token_saving_pct_std",
}

NOTES = [
    "Mean and sample standard deviation over seeds; differences and savings are of paired seeds.",
    "Tokens to the control's final loss: linear between evaluations, each seed against the control of the same seed; "
    "where an intervention never gets there, there is no mean: one of the other pairs alone would say too much.",
]


def table1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Control, intervention, and their paired difference; savings stand in the intervention's row, as printed."""
    paired, print1 = PairedRuns(RunValues(frames, study), BASE), published.table("table1")
    rows = paired.rows(published, "table1", PRINTED)
    for cells in rows:
        setting = str(cells["setting"].value)
        mine = setting == "intervention"
        cells |= _make_saving_cells(paired) if mine else dict.fromkeys(SAVED, Cell(None, word="see intervention"))
        cells |= list_published_cells(print1, setting, SAVED)
    saved = column_pair("tokens_saved_m", "tokens saved (M)", ".4g") + column_pair(
        "tokens_saved_pct", "tokens saved (%)", ".2f", narrow=True, noise="tokens_saved_pct_sd"
    )
    return make_table(
        "table1",
        f"GPT-style pretraining at {study.scale_label(BASE)}: the upper half's early queries and keys slowed.",
        study,
        key="setting",
        columns=[*columns(PRINTED), *saved, *column_pair("tokens_saved_pct_sd", "± tokens saved (%)", ".2f"), *FACTS],
        rows=rows,
        notes=NOTES,
        published=published.format_path("table1"),
    )


def _make_saving_cells(paired: PairedRuns) -> dict[str, Cell]:
    percent, row = paired.saved, paired.row("difference")
    if paired.no_mean:
        return {name: row.cell(None, paired.no_mean) for name in SAVED}
    return {
        "tokens_saved_m": row.cell(float((percent / 100 * paired.budget / 1e6).mean())),
        "tokens_saved_pct": row.cell(float(percent.mean())),
        "tokens_saved_pct_sd": row.cell(sample_deviation(percent), "one seed"),
    }
