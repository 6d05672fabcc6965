"""The page of the counts of methods' steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.fake_device import attached_hooks, method_rows
from benchmarks.fake_device.step_counts import ROOT, Rates
from benchmarks.gpu_check.results_page import table
from plumbline.plan import machines, step_memory
from plumbline.plan.step_memory import StepCount
from plumbline.specs import study_config
from plumbline.specs.study_config import Run

COLUMNS = (
    "method", "kernels", "GB moved", "TFLOP", "ms, reckoned", "update: kernels", "ms, reckoned", "peak, GB",
    "peak of a rank, GB, reckoned",
)  # fmt: skip


def page(rows: list[dict[str, Any]], wrong: list[str]) -> str:
    """The page: how it was counted, tables, what ranks add, and what no step should do."""
    measured, rates, machine = method_rows.read_timings(ROOT), Rates(), machines.load(method_rows.MACHINE)
    runs = method_rows.specs([row["method"] for row in rows])
    base = [row for row in rows if "/" not in row["method"]]
    others = [row for row in rows if "/" in row["method"]]
    spec = runs[base[0]["method"]].spec
    return "\n".join(
        [
            "# A step of each method at paper size, on a GPU that is not there",
            "",
            "Counted with fake tensors on a faked CUDA device, by torch's CPU build "
            "(`python -m benchmarks.fake_device`). bfloat16 autocast, not compiled. "
            "*Kernels*, *GB* and *TFLOP* are of one forward and backward pass; in *peak* are weights, gradients and "
            "the optimizer's moments, of one device and one micro-batch.",
            "",
            f"{'' if measured else '**No time here was measured.** '}Reckoned with {rates.bytes / 1e12:g} TB/s, "
            f"{rates.products / 1e12:g} TFLOP/s in bfloat16 products, {rates.single / 1e12:g} in float32 ones, "
            f"{rates.flash / 1e12:g} in flash attention, {rates.ours / 1e12:g} in our kernels, "
            f"{1e6 * rates.launch:g} µs of the host for a kernel; a "
            "kernel takes the longest of the three. An operator counts as one kernel, which reads inputs and writes "
            f"outputs once. A step is {method_rows.ACCUMULATED} micro-batches and an update. torch.compile makes few "
            "kernels of most pointwise ones: [compiled_step.md](compiled_step.md).",
            "",
            f"## Transfer's base scale, {base[0]['sequences']} sequences of {spec.model.context} tokens",
            "",
            *_base(base, runs, measured),
            "",
            "## Other runs",
            "",
            "Of each kind of step the first run, with the interventions that it has in its second step (what these "
            "read of held-out sequences, every so many steps, is left out), and as many sequences as profiles/slurm "
            "gives a device. Those of two nodes are sharded; what was counted is a whole model.",
            "",
            *table(
                ("run", "sequences", *COLUMNS[1:]),
                [(row["method"], row["sequences"], *_cells(row, runs[row["method"]])) for row in others],
            ),
            "",
            "## Several ranks",
            "",
            *_ranks(rows, runs),
            "",
            *_too_large(rows, runs, machine),
            "",
            "## What no step should do",
            "",
            "Looked for in each: an operator for which the host waits, a copy between host and device, a float32 "
            "product outside of the listed files, a parameter whose gradient is missing or of another type, a forward "
            f"pass that is not one graph of torch.compile (`fullgraph=True`, {method_rows.TRACED_LAYERS} layers).",
            "",
            *([f"- {fault}" for fault in wrong] or ["None was found."]),
            "",
            f"Interventions (`{attached_hooks.FOLDER}`) may wait where they ask for a step's loss at once: "
            f"{_places(rows, 'declared_waits') or 'none does'}.",
            "",
            f"Float32 products, which are listed: {_list_single_products(rows) or 'none'}.",
            *[f"- `{file}`: {why}" for file, why in method_rows.SINGLE_PRODUCTS.items()],
            "",
        ]
    )


def _base(rows: list[dict[str, Any]], runs: dict[str, Run], measured: method_rows.Measured) -> list[str]:
    """The table of the base scale's methods and variants, by their labels, next to the baseline."""
    study = study_config.load("transfer", "paper")
    baseline = next((row for row in rows if row["method"] == method_rows.BASELINE), None)
    lines = [
        (
            study.label(row["method"]),
            *_cells(row, runs[row["method"]]),
            None if baseline is None else method_rows.step_seconds(row) / method_rows.step_seconds(baseline),
            *method_rows.timing_cells(measured, row["method"]),
        )
        for row in rows
    ]
    return table((*COLUMNS, "step, of the baseline's, reckoned", *method_rows.timing_columns(measured)), lines)


def _cells(row: dict[str, Any], run: Run) -> tuple[Any, ...]:
    return (
        row["kernels"], row["bytes"] / 1e9, row["operations"] / 1e12, 1e3 * row["seconds"], row["update_kernels"],
        1e3 * row["update_seconds"], row["peak_bytes"] / 1e9, _of_rank(row, run) / 1e9,
    )  # fmt: skip


def _of_rank(row: dict[str, Any], run: Run) -> int:
    devices = machines.load(method_rows.MACHINE).devices_of(run)
    return StepCount.of_row(row).of_rank(devices, sharded=run.size in step_memory.SHARDED)


def _ranks(rows: list[dict[str, Any]], runs: dict[str, Run]) -> list[str]:
    """What several ranks add, in words, with the figures of the largest model of each kind."""
    sentences = [
        "Nothing that ranks exchange is in the columns but the last one, *peak of a rank*, which is reckoned "
        "(`plumbline.plan.step_memory`): gradients of earlier micro-batches beside the activations, and with DDP once "
        "more in its buckets (`gradient_as_bucket_view` is off); with FSDP a part of weights, gradients and moments, a "
        "gathered model and gradients that wait for the exchange."
    ]
    for sharded, name in ((False, "DDP"), (True, "FSDP")):
        there = [row for row in rows if (runs[row["method"]].size in step_memory.SHARDED) == sharded]
        there = [row for row in there if machines.load(method_rows.MACHINE).devices_of(runs[row["method"]]) > 1]
        if not there:
            continue
        row = max(there, key=lambda row_: row_["parameter_bytes"])
        run = runs[row["method"]]
        ranks = machines.load(method_rows.MACHINE).devices_of(run)
        parts = run.spec.sequences_per_batch // (ranks * row["sequences"])
        sent = step_memory.count_sent_bytes(row["parameter_bytes"], ranks)
        sentences.append(
            f"{name} on {ranks} devices sends {sent / 1e9:.3g} GB from each in a step of {parts} micro-batches, "
            f"at {row['parameter_bytes'] / 1e9:.3g} GB of parameters (`{run.key}`)."
        )
    return [" ".join(sentences)]


def _too_large(rows: list[dict[str, Any]], runs: dict[str, Run], machine: machines.Machine) -> list[str]:
    """The runs that do not fit the machine, and what becomes of them."""
    lines = []
    for row in rows:
        run, size = runs[row["method"]], _of_rank(row, runs[row["method"]])
        if size + step_memory.SPARE > machine.memory_gib * 2**30:
            remedy = step_memory.REMEDIES[run.size in step_memory.SHARDED]
            text = remedy.format(size=run.size, machine=machine.name)
            lines.append(f"- `{run.key}`, {size / 1e9:.3g} GB: {text}.")
    head = f"More than the {machine.memory_gib:g} GiB of a device, of which one is left free:"
    return [head, "", *lines] if lines else [f"{head} none."]


def _list_single_products(rows: Iterable[dict[str, Any]]) -> str:
    study = study_config.load("transfer", "paper")
    counted = [(row["method"], sum(row["single_products"].values())) for row in rows]
    names = {name: name if "/" in name else study.label(name) for name, _ in counted}
    return "; ".join(f"{names[name]} {often}" for name, often in counted if often)


def _places(rows: Iterable[dict[str, Any]], key: str) -> str:
    return "; ".join(dict.fromkeys(place for row in rows for place in row[key]))
