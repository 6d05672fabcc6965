"""Makes Table 2: how long a training step takes, QuacK's over QK norm's.

Source: quack study, "Key Results" and "Design tradeoffs".
"""

from __future__ import annotations

import pandas as pd

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import label_columns, make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    make_printed_cell,
    make_published_column,
    number_cell,
)
from plumbline.specs.study_config import Study

from .. import step_time_ratios
from ..run_grid import DEFAULT, QK_NORM, QUACK

#: What is timed, the one that all are compared with first.
ROWS = (QK_NORM, QUACK, DEFAULT)

#: Columns of the measurement that are shown.
EMPTY = ("method", "repeat", "seconds", "norms_per_block")

COLUMNS = [
    *label_columns("method", "Method"),
    number_column("step_ms", "step (ms)", ".4g", narrow=True),
    number_column("step_ms_lower_quartile", "step (ms), lower quartile", ".4g"),
    number_column("step_ms_upper_quartile", "step (ms), upper quartile", ".4g"),
    number_column("step_time_ratio", "time ratio", ".4f", narrow=True),
    number_column("step_time_ratio_lower_quartile", "ratio Q1", ".4f", narrow=True),
    number_column("step_time_ratio_upper_quartile", "ratio Q3", ".4f", narrow=True),
    number_column("time_saved_pct", "time saved (%)", ".1f", narrow=True),
    make_published_column("time_saved_pct", "faster (%)", narrow=True),
    number_column("norms_per_block", "norms a block", "g"),
    number_column("timed_pairs", "timed pairs", "d"),
    Column(name="step_workload", header="workload of a step", kind="fact"),
    Column(name="device", header="device", kind="fact"),
    *CONTEXT_ALONE,
]


def table2(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """QK norm, QuacK, and neither, timed in turn in one process."""
    printed = published.prose()["faster_pct_results"].text
    frame = frames.read_measurement(step_time_ratios.STEP_TIME)
    on = "not measured" if frame is None else f"on {step_time_ratios.device(frames)}"
    frame = pd.DataFrame(columns=EMPTY, dtype=float).astype({"method": str}) if frame is None else frame
    rows = [_row(frames, study, frame, method, printed) for method in ROWS]
    return make_table(
        "table2",
        f"Time of a training step at {study.scale_label('mha')}, {on}.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "Median and quartiles over repeats; methods take one step each in turn, in one process, and a ratio is of "
            "two steps of one turn. Whole steps: forward, backward, Muon and what the method does; on random tokens.",
            "Time is saved if the ratio's quartiles lie below 1. The summary does not say what its percentage was of.",
        ],
        published=published.format_path("prose"),
    )


def _row(frames: RunFrames, study: Study, frame: pd.DataFrame, method: str, printed: str) -> dict[str, Cell]:
    """`frame`: the measurement, or one without rows."""
    behind = (frames.find_measurement_key(step_time_ratios.STEP_TIME),)
    mine = frame[frame["method"].map(lambda name: name.partition(".")[0]) == method]
    ratio = None if method == QK_NORM else step_time_ratios.ratio(frames, method, QK_NORM)
    word = REFERENCE if method == QK_NORM and len(mine) else MISSING
    low, median, high = 1000 * mine["seconds"].quantile([0.25, 0.5, 0.75])
    cells = {"step_ms": median, "step_ms_lower_quartile": low, "step_ms_upper_quartile": high}
    cells |= {"norms_per_block": mine["norms_per_block"].max(), "timed_pairs": ratio and ratio.n}
    cells |= {
        "step_time_ratio": ratio and ratio.median,
        "step_time_ratio_lower_quartile": ratio and ratio.low,
        "step_time_ratio_upper_quartile": ratio and ratio.high,
    }
    cells |= {"time_saved_pct": ratio and step_time_ratios.time_saved_percent(ratio)}
    return {
        "method": Cell(method),
        "label": Cell(study.definition["methods"][method]["label"]),
        **{name: number_cell(value, word, behind) for name, value in cells.items()},
        "time_saved_pct_published": make_printed_cell(printed if method == QUACK else NOT_PRINTED),
        "step_workload": Cell(_work(mine), behind),
        "device": Cell(step_time_ratios.device(frames) if len(mine) else MISSING, behind),
    } | context_cells(study, "mha")


def _work(mine: pd.DataFrame) -> str:
    """What one step was."""
    if mine.empty:
        return MISSING
    row = mine.iloc[0]
    return f"{row['sequences']} x {row['context']:,} tokens, {row['micro_batch']} at a time, {row['precision']}"
