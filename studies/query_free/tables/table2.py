"""Makes Table 2: the five configurations, with their losses, sizes and times, and the queries that section 6 proposes.

Source: query_free study, Table 2 (section 5.1) and section 6.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, column_pair, label_columns, make_table, number_column
from plumbline.results.tables.table import REFERENCE, Cell, Column, Table, list_published_cells
from plumbline.specs.study_config import Study

from ..run_cells import make_cell, run_facts
from ..run_values import (
    BASELINE,
    CONFIGURATIONS,
    NONLINEAR,
    SAME,
    SCALE,
    RunValues,
    count_parameters,
    divisor,
    find_spec,
    smallest_rate,
)

#: Our columns -> the printed table's.
PRINTED = {
    "validation_loss": "val_loss_60k",
    "loss_vs_baseline_pct": "loss_vs_baseline_pct",
    "params_m": "params_m",
    "non_embedding_params_m": "non_embedding_params_m",
    "ffn_multiple": "ffn_multiple",
    "extra_score_divisor": "extra_score_divisor",
    "head_width": "head_width",
    "weight_decay": "weight_decay",
    "peak_lr": "peak_lr",
    "min_lr": "min_lr",
}

COLUMNS = [
    *label_columns("method", "Configuration"),
    *column_pair("validation_loss", "loss", ".4f", narrow=True),
    *column_pair("loss_vs_baseline_pct", "vs. baseline (%)", "+.2f", narrow=True),
    *column_pair("params_m", "parameters (M)", ".3f"),
    *column_pair("non_embedding_params_m", "non-embedding parameters (M)", ".3f"),
    number_column("non_embedding_params_ratio_to_baseline", "non-embedding parameters / baseline's", ".4f"),
    number_column("seconds_per_step", "seconds a step", ".4f"),
    number_column("step_time_ratio_to_baseline", "step time / baseline's", ".3f"),
    *column_pair("ffn_multiple", "FFN multiple", ".2f"),
    *column_pair("extra_score_divisor", "extra score divisor (beside √d_k)", ".3g"),
    *column_pair("head_width", "d_k", "d"),
    *column_pair("weight_decay", "weight decay", ".3g"),
    *column_pair("peak_lr", "peak learning rate", ".3g"),
    *column_pair("min_lr", "minimum learning rate", ".3g"),
    Column(name="learned_query", header="W_Q", kind="fact"),
    number_column("parameters", "parameters", "d", readable=False),
    number_column("wall_seconds", "wall time (s)", ".1f", readable=False),
    Column(name="device", header="device", kind="fact", readable=False),
    *FACTS,
]


def table2(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each configuration as printed, then one for each query that the paper proposes."""
    values, printed = RunValues(frames, study), published.table("table2", key="config_id")
    rows = []
    for method in (*CONFIGURATIONS, *NONLINEAR):
        cells = {"method": Cell(method), "label": Cell(study.label(method))}
        cells |= result_cells(values, method) | size_cells(study, method)
        rows.append(cells | list_published_cells(printed, method, PRINTED) | run_facts(values, method))
    return make_table(
        "table2",
        f"The five configurations at {study.scale_label(SCALE)}, and the queries of section 6.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "Parameters are counted on the modules; non-embedding ones leave out tokens and positions. "
            "`vs. baseline` is the loss "
            f"over the baseline's, less one. One seed: differences below {SAME:.2g} % count as none (interpretation "
            "same_loss).",
            "The queries of section 6 are proposed there and not run by the paper.",
            _timing_note(values),
        ],
        published=published.format_path("table2"),
    )


def result_cells(values: RunValues, method: str) -> dict[str, Cell]:
    """What a run gave, itself and against the baseline."""
    both = (method, BASELINE)
    seconds, of_baseline = values.step_seconds(method), values.step_seconds(BASELINE)
    alone = {
        "validation_loss": make_cell(values, values.loss(method), method),
        "seconds_per_step": make_cell(values, seconds, method),
        "wall_seconds": make_cell(values, values.seconds(method), method),
        "device": Cell(" and ".join(values.devices(method)), values.keys(method)),
    }
    if method == BASELINE:
        reference = Cell(None, values.keys(method), word=REFERENCE)
        return alone | {"loss_vs_baseline_pct": reference, "step_time_ratio_to_baseline": reference}
    return alone | {
        "loss_vs_baseline_pct": make_cell(values, values.percent(method), *both),
        "step_time_ratio_to_baseline": make_cell(values, seconds / of_baseline, *both),
    }


def size_cells(study: Study, method: str) -> dict[str, Cell]:
    """What a configuration is, by its spec and its modules."""
    spec = find_spec(study, method)
    mine, baseline = count_parameters(spec.model), count_parameters(find_spec(study, BASELINE).model)
    return {
        "params_m": Cell(mine.total / 1e6),
        "non_embedding_params_m": Cell(mine.body / 1e6),
        "non_embedding_params_ratio_to_baseline": Cell(mine.body / baseline.body),
        "parameters": Cell(mine.total),
        "ffn_multiple": Cell(spec.model.ffn_width / spec.model.width),
        "extra_score_divisor": Cell(divisor(spec.model)),
        "head_width": Cell(spec.model.head_width),
        "weight_decay": Cell(spec.optimizer.weight_decay),
        "peak_lr": Cell(spec.optimizer.learning_rate),
        "min_lr": Cell(smallest_rate(spec)),
        "learned_query": Cell("yes" if mine.of("query") else "no"),
    }


def _timing_note(values: RunValues) -> str:
    """On what runs were timed, and what that is worth."""
    devices = " and ".join(values.devices(*CONFIGURATIONS, *NONLINEAR)) or "nothing yet"
    return (
        f"Times are each run's own, evaluations and checkpoints included (on {devices}); where runs shared a machine, "
        "a ratio of two times says little. The paper prints none."
    )
