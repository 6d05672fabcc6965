"""The page of what compiled steps move."""

from __future__ import annotations

from typing import Any

from benchmarks.fake_device import fake_step, method_rows
from benchmarks.fake_device.step_counts import ROOT, Rates
from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.results_page import table
from plumbline.model.flops import counted
from plumbline.plan import machines
from plumbline.specs import study_config

#: Machine of config/machines.yaml -> what it is reckoned to do. The vendors' peaks are 3.35, 4.8 and 2.0 TB/s, 989, 989
#: and 312 TFLOP/s.
RATES = {
    "h100": Rates(),
    "h200": Rates(bytes=4.0e12),
    "a100": Rates(bytes=1.7e12, products=240e12, single=15e12, flash=140e12, ours=90e12),
}
#: What is counted of a group of kernels.
COUNTED = ("kernels", "bytes", "operations", "seconds")
#: What is left to do -> what it would save, by which count, and what has to be seen on a device first.
IDEAS = (
    (
        "micro-batches of 16 sequences instead of 8",
        "{accumulation:.1f} ms for each 16 sequences: half as many additions of gradients",
        "whether 80 GB hold it: activations are most of the peak",
    ),
    (
        "bfloat16 copies of the weights, kept over the micro-batches of a step",
        "{casts:.1f} ms a micro-batch but for the first",
        "nothing; state beside the parameters, which each update has to drop",
    ),
    (
        "gradients added to the float32 ones by the kernel that widens them",
        "{fused_accumulation:.1f} ms a micro-batch but for the first",
        "Inductor does not write to `.grad`; a hook of each parameter could run a kernel of ours",
    ),
    (
        "heads rotated in the layout in which the projection leaves them",
        "{heads:.1f} ms: copies of values and outputs by head",
        "how fast flash attention is with heads apart",
    ),
    (
        "rotary positions and the split into heads as one kernel of ours, or as the product's epilogue",
        "up to {rotary:.1f} ms",
        "what an epilogue costs the product",
    ),
    (
        "a norm's gradient, its gain's included, in one kernel",
        "up to {norms:.1f} ms (Inductor has the rest of norm, addition and cast in one)",
        "Inductor's sums over tokens, which it makes in parts",
    ),
    (
        "clipping inside AdamW's kernel",
        "{clip:.1f} ms a step: gradients are not written and read once more",
        "a kernel of ours: `grad_scale` of torch's writes them back",
    ),
    (
        "the loss in one chunk",
        "{chunks:.1f} ms: the head's gradient is added up once",
        "0.8 GB more at the peak",
    ),
    (
        "products at 700 TFLOP/s instead of 620",
        "{products:.1f} ms",
        "what cuBLAS does with these shapes, and at which clock",
    ),
)


def page(rows: list[dict[str, Any]], sequences: int) -> str:
    """The page: the baseline by kind of kernel, its MFU, what is left to do, and methods beside it."""
    study, rates = study_config.load("transfer", "paper"), Rates()
    spec = base_scale_specs.runs("paper")[method_rows.BASELINE]
    baseline = next(row for row in rows if row["method"] == method_rows.BASELINE)
    groups = dict(sorted(baseline["groups"].items(), key=lambda item: -item[1]["seconds"]))
    whole = {key: sum(entry[key] for entry in groups.values()) for key in COUNTED}
    update = method_rows.counted(fake_step.FakeStep(spec, sequences))
    useful = counted(spec.model, sequences=sequences, causal=True)
    peak = 1e12 * machines.load("h100").peak_tflops
    adding, beside = _adding(update, rates), _beside_passes(update, rates)
    total = whole["seconds"] + beside
    measured = method_rows.measured(ROOT, "compiled_method_steps")
    context = spec.model.context
    lines = []
    for name, entry in groups.items():
        share = f"{100 * entry['seconds'] / whole['seconds']:.0f} %"
        lines.append((name, round(entry["kernels"]), entry["bytes"] / 1e9, 1e3 * entry["seconds"], share))
    lines.append(("all", round(whole["kernels"]), whole["bytes"] / 1e9, 1e3 * whole["seconds"], "100 %"))
    needed = useful / (0.55 * peak)
    bound = groups["matrix products"]["seconds"] + groups["attention"]["seconds"]
    return "\n".join(
        [
            "# Where a compiled step's bytes go, on a GPU that is not there",
            "",
            "Inductor's own plan of kernels and its count of what each moves, for the transfer study's base scale "
            f"({sequences} sequences of {context} tokens, bfloat16), made with fake tensors on a faked H100; no code "
            "was compiled or run (`python -m benchmarks.fake_device.compiled_step`). "
            f"{'Reckoned, but for what is measured' if measured else '**No time here was measured**'}: "
            f"a kernel takes as long as its bytes at {rates.bytes / 1e12:g} TB/s or its operations at "
            f"{rates.products / 1e12:g} TFLOP/s (flash attention {rates.flash / 1e12:g}, our kernels "
            f"{rates.ours / 1e12:g}), whichever is longer.",
            "",
            "## The baseline, one forward and backward pass",
            "",
            *table(("kernels for", "number", "GB moved", "ms, reckoned", "share"), lines),
            "",
            f"That is {100 * useful / whole['seconds'] / peak:.0f} % of the peak (reckoned; {useful / 1e12:.1f} TFLOP, "
            f"visible pairs alone). A step of {method_rows.ACCUMULATED} micro-batches has more, for each of them "
            f"{1e3 * beside:.1f} ms: adding each gradient to the one before takes "
            f"{1e3 * adding:.1f} ms in all but the first, clipping and AdamW {1e3 * update['update_seconds']:.1f} ms a "
            f"step. So it is {1e3 * total:.0f} ms a micro-batch, {100 * useful / total / peak:.0f} %. Not compiled, "
            f"the passes alone are reckoned {1e3 * update['seconds']:.0f} ms."
            + " Measured: nothing yet."
            * (not measured),
            "",
            "## What would take it to 55 %",
            "",
            f"55 % are {1e3 * needed:.0f} ms. Products and attention alone are reckoned {1e3 * bound:.0f} ms, so all "
            f"else may take {1e3 * (needed - bound):.0f} ms: no one of these is enough. Gains are reckoned, and add up "
            "only in part.",
            "",
            *table(("what", "gain, reckoned", "what it waits for"), _ideas(groups, update, rates)),
            "",
            "Done, since it could be tested without a device: where the step is compiled the loss's target is "
            "subtracted by a comparison, with the same bits. Inductor then makes one kernel of a chunk's softmax and "
            "gradient and stores no float32 logits: 10.5 GB less by its count, 3.7 ms reckoned.",
            "",
            "## Methods beside the baseline",
            "",
            "One forward and backward pass each; *step, of the baseline's* has additions and the update besides, and "
            "is where `relative_step_time` of `config/machines.yaml` is from. Planned whole, or with few layers, of "
            "which what a layer adds was multiplied. The other machines are reckoned with "
            + " and ".join(f"{_said(one)} ({name.upper()})" for name, one in RATES.items() if name != "h100")
            + ".",
            "",
            *table(
                (
                    "method",
                    "kernels",
                    "GB moved",
                    "ms, reckoned",
                    *(f"step, of the baseline's: {name.upper()}, reckoned" for name in RATES),
                    "planned",
                    *method_rows.measured_columns(measured),
                ),
                [_beside_baseline(study.label(row["method"]), row, baseline, update, measured) for row in rows],
            ),
            "",
        ]
    )


def _ideas(groups: dict[str, Any], update: dict[str, Any], rates: Rates) -> list[tuple[str, str, str]]:
    """The ideas with their gains in milliseconds."""
    weights = update["parameter_bytes"]
    products = groups["matrix products"]["seconds"]
    gains = {
        "accumulation": 3 * weights / rates.bytes,
        "casts": 1.5 * weights / rates.bytes,
        # Widened: read in bfloat16, written in float32, read again to be added.
        "fused_accumulation": 2 * weights / rates.bytes,
        "heads": groups["queries, keys, values and heads"]["seconds"],
        "rotary": groups["rotary positions"]["seconds"],
        "norms": 0.3 * groups["norms and the residual stream"]["seconds"],
        "clip": 2 * weights / rates.bytes,
        "chunks": 0.3e-3,
        "products": products * (1 - rates.products / 700e12),
    }
    milliseconds = {name: 1e3 * gain for name, gain in gains.items()}
    return [(what, gain.format(**milliseconds), until) for what, gain, until in IDEAS]


def _adding(update: dict[str, Any], rates: Rates) -> float:
    """Seconds of adding a micro-batch's gradients to the ones before: both are read, and the sum is written."""
    return 3 * float(update["parameter_bytes"]) / rates.bytes


def _beside_passes(update: dict[str, Any], rates: Rates) -> float:
    """Seconds beside a micro-batch's passes: additions in all but a step's first, and its share of the update."""
    parts = method_rows.ACCUMULATED
    return ((parts - 1) * _adding(update, rates) + update["update_bytes"] / rates.bytes) / parts


def _passes(groups: dict[str, Any], rates: Rates) -> float:
    """Seconds of a micro-batch's passes by what each group of kernels moves or multiplies."""
    speeds = {"attention": rates.flash, "attention by our kernels": rates.ours}
    return sum(
        max(entry["bytes"] / rates.bytes, entry["operations"] / speeds.get(name, rates.products))
        for name, entry in groups.items()
    )


def _said(rates: Rates) -> str:
    return (
        f"{rates.bytes / 1e12:g} TB/s, {rates.products / 1e12:g} TFLOP/s, {rates.flash / 1e12:g} in flash attention "
        f"and {rates.ours / 1e12:g} in our kernels"
    )


def _beside_baseline(
    label: str, row: dict[str, Any], baseline: dict[str, Any], update: dict[str, Any], measured: method_rows.Measured
) -> tuple[Any, ...]:
    whole = {key: sum(entry[key] for entry in row["groups"].values()) for key in COUNTED}
    steps = {
        name: [_passes(each["groups"], rates) + _beside_passes(update, rates) for each in (row, baseline)]
        for name, rates in RATES.items()
    }
    return (
        label, round(whole["kernels"]), whole["bytes"] / 1e9, 1e3 * whole["seconds"],
        *(f"{mine / other:.2f}" for mine, other in steps.values()), row["planned"],
        *method_rows.measured_cells(measured, row["method"]),
    )  # fmt: skip
