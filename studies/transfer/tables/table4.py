"""Makes Table 4: parameters and training operations, exact and without training, at the paper's own size.

Source: transfer study, appendix C and Table 4. Parameters and operations are those of the real modules on the meta
device; the paper's formula stands next to the true count.
"""

from __future__ import annotations

from torch import nn

from plumbline.model.decoder import on_meta
from plumbline.model.flops import count_operations
from plumbline.model.roles import collect_roles
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import number_column
from plumbline.results.tables.table import (
    Cell,
    Column,
    Table,
    list_published_cells,
    make_published_column,
    require_reference,
)
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from plumbline.specs.study_config import Study

from ..headline_runs import BASE

SIZE = "paper"


COLUMNS = [
    Column(name="method", header="Method", kind="label", narrow=True),
    Column(name="category", header="Category", kind="fact"),
    number_column("parameters", "Parameters", ",d"),
    number_column("params_b", "Params (B)", ".3f", narrow=True),
    make_published_column("params_b", "Params (B)", narrow=True),
    number_column("delta_params_pct", "ΔP (%)", "+.2f", narrow=True),
    make_published_column("delta_params_pct", "ΔP (%)"),
    number_column("step_flops_formula", "step FLOPs, formula", ".4e"),
    number_column("delta_flops_pct", "ΔF (%)", "+.2f", narrow=True),
    make_published_column("delta_flops_pct", "ΔF (%)"),
    number_column("step_flops_counted", "step FLOPs, counted", ".4e"),
    number_column("delta_flops_counted_pct", "ΔF counted (%)", "+.2f"),
    Column(name="spec_id", header="spec id", kind="fact", readable=False),
    Column(name="preset", header="preset", kind="fact", readable=False),
    Column(name="scale", header="scale", kind="fact", readable=False),
]

#: Columns of ours that the paper prints, under the same names.
PRINTED = {name: name for name in ("params_b", "delta_params_pct", "delta_flops_pct")}


def table4(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each method at paper size, whatever the preset of the runs."""
    paper = study if study.preset == SIZE else study_config.load(study.name, SIZE)
    reference = require_reference(paper, "table4")
    specs = {run.spec.method: run.spec for run in paper.runs.values() if run.spec.scale == BASE}
    counts = {}
    for method in paper.methods:
        spec = specs[method]
        sequences = spec.sequences_per_batch
        parameters = sum(value.numel() for value in on_meta(spec.model).parameters())
        counts[method] = (
            parameters,
            appendix_c(spec.model, sequences),
            count_operations(spec.model, sequences=sequences),
        )
    print4 = published.table("table4")
    order = [method for method in print4.index if method in counts]
    order += [method for method in counts if method not in order]
    rows = []
    for method in order:
        parameters, formula, operations = counts[method]
        source = f"run spec {specs[method].run_id} (paper size), modules on the meta device"
        against = [100 * (count / base - 1) for count, base in zip(counts[method], counts[reference], strict=True)]
        rows.append(
            {
                "method": Cell(method),
                "category": Cell(paper.methods[method].get("category", "none")),
                "parameters": Cell(parameters, source=source),
                "params_b": Cell(parameters / 1e9, source=source),
                "delta_params_pct": Cell(against[0], source=source),
                "step_flops_formula": Cell(formula, source=source + ", appendix C.1"),
                "delta_flops_pct": Cell(against[1], source=source + ", appendix C.1"),
                "step_flops_counted": Cell(operations, source=source),
                "delta_flops_counted_pct": Cell(against[2], source=source),
                "spec_id": Cell(specs[method].run_id),
                "preset": Cell(SIZE),
                "scale": Cell(paper.scale_label(BASE)),
            }
            | list_published_cells(print4, method, PRINTED)
        )
    return Table(
        name="table4",
        title=f"Parameters and training FLOPs of one step at {paper.scale_label(BASE)}.",
        study=study.name,
        preset=SIZE,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "Exact and without training: modules on the meta device at paper size, whatever the preset of the runs.",
            "Formula: appendix C.1, times 3, over the step's sequences; it has neither the head nor the products of "
            "weights and values. Counted: every matrix product of the modules, the head's too, over all pairs of "
            "query and key, times 3.",
        ],
        published=published.format_path("table4"),
    )


def appendix_c(model: ModelSpec, sequences: int = 1) -> int:
    """Training operations on `sequences` sequences by the printed formula.

    For each layer 2 s^2 d + s (2 (2 d^2 + 2 d d_kv) + 2 k d d_inter), times 3, with the context s, width d, key and
    value width d_kv, and k matrices of inner width d_inter in the FFN. Neither the head nor a second s^2 d for the
    weighted values is in it, nor what a method changes in its projections. A gate on head outputs adds 2 s for each
    of its weights (2 s d heads), which the text does not write down but its Table 4 has.

    The FFN's k d d_inter and the gate's weights are read from the modules, so that no component's name is asked for.
    """
    s, d = model.context, model.width
    scores = 2 * s * s * d
    projections = 2 * (2 * d * d + 2 * d * model.key_value_heads * model.head_width)
    layers = (
        scores + s * (projections + 2 * (_weights(block.ffn) + _weights(block.attention.output)))
        for block in on_meta(model).blocks
    )
    return 3 * sequences * sum(layers)


def _weights(module: nn.Module) -> int:
    """Weights of a module's matrices."""
    values = dict(module.named_parameters())
    return sum(values[name].numel() for name, role in collect_roles(module).items() if role.matrix)
