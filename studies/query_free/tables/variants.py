"""Makes the table of variants: every run next to the baseline and next to the run that it is a variant of.

Not a table of the paper, which reports of most of these in words (sections 5.1 and 6) and has not run the others.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, label_columns, make_table, number_column
from plumbline.results.tables.table import REFERENCE, Cell, Column, Table, published_cells, published_column
from plumbline.specs.study_config import Study

from ..run_cells import make_cell, run_facts
from ..run_values import BASELINE, SAME, SCALE, RunValues, count_parameters, divisor, find_spec, smallest_rate

#: Group of runs in the study's YAML -> what its runs are, apart from the five.
KINDS = {"table2": "Table 2", "nonlinear": "proposed", "variants": "variant", "rates": "rate", "norm_free": "theory"}

COLUMNS = [
    *label_columns("method", "Run"),
    Column(name="run_kind", header="kind of run", kind="label"),
    number_column("validation_loss", "loss", ".4f", narrow=True),
    published_column("validation_loss", "loss", narrow=True),
    number_column("loss_vs_baseline_pct", "vs. baseline (%)", "+.2f", narrow=True),
    Column(name="variant_of", header="variant of", kind="label"),
    number_column("loss_vs_variant_of_pct", "vs. that run (%)", "+.2f", narrow=True),
    number_column("non_embedding_params_m", "non-embedding parameters (M)", ".3f"),
    number_column("peak_lr", "peak learning rate", ".3g"),
    number_column("min_lr", "minimum learning rate", ".2g"),
    number_column("weight_decay", "weight decay", ".3g"),
    number_column("extra_score_divisor", "extra score divisor (beside √d_k)", ".4g"),
    Column(name="description", header="description", kind="label"),
    *FACTS,
]


def variants(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run, in the order of the study's groups."""
    values, printed = RunValues(frames, study), published.table("table2", key="config_id")
    rows = []
    for method, kind in _methods(study).items():
        arm = study.definition.get("arms", {}).get(method, {})
        of = arm.get("variant_of", "")
        row = {
            "method": Cell(method),
            "label": Cell(study.label(method)),
            "run_kind": Cell(kind),
            "variant_of": Cell(of),
        }
        row |= {"description": Cell(arm.get("note", "Table 2.").strip()), **_settings(study, method)}
        row |= {"validation_loss": make_cell(values, values.loss(method), method)}
        row |= {
            "loss_vs_baseline_pct": _against(values, method, BASELINE),
            "loss_vs_variant_of_pct": _against(values, method, of),
        }
        rows.append(
            row | published_cells(printed, method, {"validation_loss": "val_loss_60k"}) | run_facts(values, method)
        )
    return make_table(
        "variants",
        f"All runs at {study.scale_label(SCALE)}: other schedules, scales, decays and queries.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"One seed: differences below {SAME:.2g} % count as none (interpretation same_loss).",
            "The paper compares reduced models at rates that were searched for with baselines at a rate that was "
            "not; rows of the kind `rate` have both under the same schedules.",
        ],
        published=published.format_path("table2"),
    )


def _methods(study: Study) -> dict[str, str]:
    """Method -> kind, in the order of the groups."""
    return {run.spec.method: KINDS[group] for group in KINDS for run in study.group(group)}


def _against(values: RunValues, method: str, other: str) -> Cell:
    if not other or method == other:
        return Cell(None, values.keys(method), word=REFERENCE)
    return make_cell(values, values.percent(method, other), method, other)


def _settings(study: Study, method: str) -> dict[str, Cell]:
    spec = find_spec(study, method)
    return {
        "non_embedding_params_m": Cell(count_parameters(spec.model).body / 1e6),
        "peak_lr": Cell(spec.optimizer.learning_rate),
        "min_lr": Cell(smallest_rate(spec)),
        "weight_decay": Cell(spec.optimizer.weight_decay),
        "extra_score_divisor": Cell(divisor(spec.model)),
    }
