"""Makes Table 5: how much the feed-forward networks write into the stream at 3 %, and the attention above them.

Source: premature study, section 5.6, appendix C and Table 5. Columns that the paper lacks: the write before
training, and by how much less each writes than the two GELU networks (printed in the text).
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, column_pair, label_columns, make_table, number_column
from plumbline.results.tables.table import Cell, Table, list_published_cells
from plumbline.specs.study_config import Study

from ..row_cells import RowCells
from ..run_values import BASE, EARLY, Part, RunValues

#: The printed names of the runs; widths are those of the paper preset.
RUNS = {"gelu_3840": "gpt", "gelu_2560": "gpt_gelu2560", "swiglu_2560": "gpt_swiglu", "geglu_2560": "gpt_geglu"}

PRINTED = {
    "ffn_write_rms_3pct": "upper_ffn_write_rms",
    "upper_logit_3pct": "upper_logit",
    "upper_entropy_3pct": "upper_entropy",
    "first_upper_ffn_write_rms_3pct": "first_upper_write_rms",
}

#: Probe of each printed column, and the part of the model that it is read of.
PROBES: dict[str, tuple[str, Part]] = {
    "ffn_write_rms_3pct": ("ffn_write_rms", "upper"),
    "upper_logit_3pct": ("logit_mean_abs", "upper"),
    "upper_entropy_3pct": ("entropy", "upper"),
    "first_upper_ffn_write_rms_3pct": ("ffn_write_rms", "first_upper"),
}

#: By how much less a network writes: than which, and where.
BELOW: dict[str, tuple[str, Part]] = {
    "ffn_write_pct_below_wide_gelu": ("gpt", "upper"),
    "ffn_write_pct_below_narrow_gelu": ("gpt_gelu2560", "upper"),
    "first_upper_ffn_write_pct_below_wide_gelu": ("gpt", "first_upper"),
    "first_upper_ffn_write_pct_below_narrow_gelu": ("gpt_gelu2560", "first_upper"),
}

COLUMNS = [
    *label_columns("ffn", "FFN"),
    number_column("ffn_width", "FFN width", "d"),
    *column_pair("ffn_write_rms_3pct", "FFN write RMS @3%", ".4f", narrow=True),
    *column_pair("upper_logit_3pct", "upper logit @3%", ".4f", narrow=True),
    *column_pair("upper_entropy_3pct", "upper entropy @3%", ".4f", narrow=True),
    *column_pair("first_upper_ffn_write_rms_3pct", "first upper FFN write RMS @3%", ".4f"),
    number_column("ffn_write_rms_start", "upper FFN write RMS at the start", ".4f"),
    number_column("ffn_write_pct_below_wide_gelu", "FFN write below the wide GELU's (%)", ".1f"),
    number_column("ffn_write_pct_below_narrow_gelu", "FFN write below the narrow GELU's (%)", ".1f"),
    number_column(
        "first_upper_ffn_write_pct_below_wide_gelu",
        "first upper FFN write below the wide GELU's (%)",
        ".1f",
        readable=False,
    ),
    number_column(
        "first_upper_ffn_write_pct_below_narrow_gelu",
        "first upper FFN write below the narrow GELU's (%)",
        ".1f",
        readable=False,
    ),
    *FACTS,
]

NOTES = [
    "Root of the mean square of each FFN's output over tokens and channels, then the mean over upper layers.",
    "The runs are those of Tables 3 and 4 (interpretation pathway_runs); the printed ones were runs of their own.",
]


def table5(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each feed-forward network."""
    run_values, print5 = RunValues(frames, study), published.table("table5")
    rows = []
    for name, method in RUNS.items():
        key = run_values.key(method)
        row = RowCells(run_values, (key,), BASE)
        cells = {"ffn": Cell(name), "label": Cell(print5.loc[name, "architecture"])}
        cells["ffn_width"] = row.cell(None if key is None else study.runs[key].spec.model.ffn_width)
        cells |= {
            column: row.cell(run_values.value(key, probe, EARLY, part)) for column, (probe, part) in PROBES.items()
        }
        cells["ffn_write_rms_start"] = row.cell(run_values.value(key, "ffn_write_rms", 0.0))
        for column, (reference, part) in BELOW.items():
            other = run_values.key(reference)
            cells[column] = row.cell(reduction(run_values, key, other, part), keys=(key, other))
        rows.append(cells | list_published_cells(print5, name, PRINTED) | row.facts())
    return make_table(
        "table5",
        f"Feed-forward residual writes at {study.scale_label(BASE)}.",
        study,
        key="ffn",
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        published=published.format_path("table5"),
    )


def reduction(run_values: RunValues, key: str | None, reference: str | None, part: Part = "upper") -> float:
    """By how many percent a run's early write is below a reference's."""
    write, other = (run_values.value(run, "ffn_write_rms", EARLY, part) for run in (key, reference))
    return 100 * (1 - write / other)
