"""Makes the table of identities: models without W_K or W_V as well, with an output head of their own, and with layers
that share their weights, made on request.

Not a table of the paper, whose abstract claims it of "Query, Key or Value" and which trains W_Q = I alone.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.interpretations import describe_run
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, label_columns, make_table, number_column
from plumbline.results.tables.table import REFERENCE, Cell, Column, Table
from plumbline.specs.study_config import Study

from ..run_cells import make_cell, run_facts
from ..run_values import BASELINE, IDENTITY, SAME, SCALE, RunValues, count_parameters, divisor, find_spec

#: Each row's method -> the one that differs from it by one thing: a matrix, the head, the scale or the schedule. An
#: untied W_Q = I, or one with shared layers, is compared with such a baseline as in Table 2, each at its own rate.
COUNTERPARTS = {
    BASELINE: "",
    "baseline_reduced_schedule": BASELINE,
    IDENTITY: "baseline_reduced_schedule",
    "wq_identity_baseline_schedule": BASELINE,
    "wk_identity": IDENTITY,
    "wk_identity.baseline_scale": "wk_identity",
    "wv_identity": "baseline_reduced_schedule",
    "wv_identity_baseline_schedule": BASELINE,
    "baseline.untied": BASELINE,
    "wq_identity.untied": "baseline.untied",
    "baseline.shared_layers": BASELINE,
    "wq_identity.shared_layers": "baseline.shared_layers",
}

#: Matrices that attention may learn, by the role of their parameters.
MATRICES = {"query": "W_Q", "key": "W_K", "value": "W_V", "output": "W_O"}

COLUMNS = [
    *label_columns("method", "Run"),
    Column(name="learned_matrices", header="learned", kind="label"),
    Column(name="head", header="head", kind="label"),
    Column(name="layers", header="layers", kind="label"),
    number_column("validation_loss", "loss", ".4f", narrow=True),
    number_column("loss_vs_baseline_pct", "vs. baseline (%)", "+.2f", narrow=True),
    Column(name="counterpart", header="counterpart", kind="label"),
    number_column("loss_vs_counterpart_pct", "vs. counterpart (%)", "+.2f", narrow=True),
    number_column("params_m", "parameters (M)", ".3f"),
    number_column("non_embedding_params_m", "non-embedding parameters (M)", ".3f"),
    number_column("extra_score_divisor", "extra score divisor (beside √d_k)", ".4g"),
    number_column("peak_lr", "peak learning rate", ".3g"),
    Column(name="description", header="description", kind="label"),
    *FACTS,
]


def identities(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run, each compared with the baseline and with its counterpart."""
    values = RunValues(frames, study)
    return make_table(
        "identities",
        f"Without W_Q, W_K or W_V, with an untied head or shared layers, at {study.scale_label(SCALE)}.",
        study,
        key="method",
        columns=COLUMNS,
        rows=[_make_row(values, method, other) for method, other in COUNTERPARTS.items()],
        notes=[
            f"One seed: differences below {SAME:.2g} % count as none (interpretation same_loss). Rates and scales of "
            "W_K = I and W_V = I are those of interpretation other_identities, and none was searched for.",
        ],
    )


def _make_row(values: RunValues, method: str, counterpart: str) -> dict[str, Cell]:
    spec = find_spec(values.study, method)
    counts = count_parameters(spec.model)
    is_usual = values.key(method) in values.study.runs and method not in values.study.definition.get("arms", {})
    return {
        "method": Cell(method),
        "label": Cell(values.study.label(method)),
        "learned_matrices": Cell(" ".join(name for role, name in MATRICES.items() if counts.of(role))),
        "layers": Cell("shared" if spec.model.shared_layers else "own"),
        "head": Cell("tied" if spec.model.tied_embeddings else "untied"),
        "validation_loss": make_cell(values, values.loss(method), method),
        "loss_vs_baseline_pct": _compare(values, method, BASELINE),
        "counterpart": Cell(values.study.label(counterpart) if counterpart else "none"),
        "loss_vs_counterpart_pct": _compare(values, method, counterpart or method),
        "params_m": Cell(counts.total / 1e6),
        "non_embedding_params_m": Cell(counts.body / 1e6),
        "extra_score_divisor": Cell(divisor(spec.model)),
        "peak_lr": Cell(spec.optimizer.learning_rate),
        "description": Cell("the recipe" if is_usual else describe_run(values.study, method)),
    } | run_facts(values, method)


def _compare(values: RunValues, method: str, other: str) -> Cell:
    if method == other:
        return Cell(None, values.keys(method), word=REFERENCE)
    return make_cell(values, values.percent(method, other), method, other)
