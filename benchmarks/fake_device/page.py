"""The page of the counts of methods' steps."""

from __future__ import annotations

from typing import Any

from benchmarks.fake_device import method_rows
from benchmarks.fake_device.step_counts import ROOT, Rates
from benchmarks.gpu_check.results_page import table
from plumbline.specs import study_config

#: Bytes of an H100's memory.
HOLDS = 80e9
COLUMNS = (
    "method", "kernels", "GB moved", "TFLOP", "ms, reckoned", "update: kernels", "ms, reckoned", "peak, GB",
    "step, of the baseline's, reckoned", "micro-batch and update, ms, measured",
)  # fmt: skip


def page(rows: list[dict[str, Any]], specs: dict[str, Any], sequences: int, wrong: list[str]) -> str:
    """The page: how it was counted, a table, and what no step should do."""
    study, measured, rates = study_config.load("transfer", "paper"), method_rows.measured(ROOT), Rates()
    context = next(iter(specs.values())).model.context
    baseline = next((row for row in rows if row["method"] == method_rows.BASELINE), None)
    lines = []
    for row in rows:
        lines.append((
            study.label(row["method"]), row["kernels"], row["bytes"] / 1e9, row["operations"] / 1e12,
            1e3 * row["seconds"], row["update_kernels"], 1e3 * row["update_seconds"], row["peak_bytes"] / 1e9,
            None if baseline is None else method_rows.step_seconds(row) / method_rows.step_seconds(baseline),
            f"{1e3 * measured[row['method']]:.0f}" if row["method"] in measured else "not measured",
        ))  # fmt: skip
    too_large = [study.label(row["method"]) for row in rows if row["peak_bytes"] > HOLDS]
    single = [
        f"{study.label(row['method'])} {sum(row['single_products'].values())}" for row in rows if row["single_products"]
    ]
    return "\n".join(
        [
            "# A step of each method at paper size, on a GPU that is not there",
            "",
            "Counted with fake tensors on a faked CUDA device, by torch's CPU build "
            "(`python -m benchmarks.fake_device`). "
            f"Transfer's base scale, {sequences} sequences of {context} tokens, bfloat16 autocast, not compiled. "
            "*Kernels*, *GB* and *TFLOP* are of one forward and backward pass; in *peak* are weights, gradients and "
            "AdamW's moments.",
            "",
            f"{'' if measured else '**No time here was measured.** '}Reckoned with {rates.bytes / 1e12:g} TB/s, "
            f"{rates.products / 1e12:g} TFLOP/s in bfloat16 products, {rates.single / 1e12:g} in float32 ones, "
            f"{rates.flash / 1e12:g} in flash attention, {rates.ours / 1e12:g} in our kernels, "
            f"{1e6 * rates.launch:g} µs of the host for a kernel; a "
            "kernel takes the longest of the three. An operator counts as one kernel, which reads inputs and writes "
            f"outputs once. A step is {method_rows.ACCUMULATED} micro-batches and an update. torch.compile makes few "
            "kernels of most pointwise ones: [compiled_step.md](compiled_step.md).",
            "",
            *table(COLUMNS, lines),
            "",
            f"More than the {HOLDS / 1e9:g} GB of a device, by this count: {', '.join(too_large) or 'none'}. Such runs "
            "want a smaller `--micro-batch`, or `--recompute-activations`.",
            "",
            "## What no step should do",
            "",
            "Looked for in each: an operator for which the host waits, a copy between host and device, a float32 "
            "product outside of the listed files, a parameter whose gradient is missing or of another type, a forward "
            f"pass that is not one graph of torch.compile (`fullgraph=True`, {method_rows.TRACED_LAYERS} layers).",
            "",
            *([f"- {fault}" for fault in wrong] or ["None was found."]),
            "",
            f"Float32 products, which are listed: {'; '.join(single) or 'none'}.",
            *[f"- `{file}`: {why}" for file, why in method_rows.SINGLE_PRODUCTS.items()],
            "",
        ]
    )
