"""The page of what compiled steps move."""

from __future__ import annotations

from typing import Any

from benchmarks.fake_device import method_rows
from benchmarks.fake_device.machine_rates import COUNTED, H100, RATES, seconds_on
from benchmarks.fake_device.step_counts import ROOT, Rates
from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.results_page import table
from plumbline.model.flops import count_operations
from plumbline.plan import machines
from plumbline.plan.model_counts import PAIRS
from plumbline.specs import study_config


def page(rows: list[dict[str, Any]], sequences: int) -> str:
    """The page: the baseline by kind of kernel, its MFU, and methods next to it."""
    study, rates = study_config.load("transfer", "paper"), Rates()
    spec = base_scale_specs.runs("paper")[method_rows.BASELINE]
    baseline = next(row for row in rows if row["method"] == method_rows.BASELINE)
    groups = dict(sorted(baseline["groups"].items(), key=lambda item: -item[1][H100]))
    whole = {key: sum(entry[key] for entry in groups.values()) for key in COUNTED}
    update = baseline["update"]
    useful = count_operations(spec.model, sequences=sequences)  # all pairs, as a plan counts
    visible = count_operations(spec.model, sequences=sequences, causal=True)
    peak = 1e12 * machines.load("h100").peak_tflops
    adding, beside = _adding(update, rates), _beside_passes(update, rates)
    total = whole[H100] + beside
    measured = method_rows.read_timings(ROOT)
    context = spec.model.context
    lines = []
    for name, entry in groups.items():
        share = f"{100 * entry[H100] / whole[H100]:.0f} %"
        lines.append((name, round(entry["kernels"]), entry["bytes"] / 1e9, 1e3 * entry[H100], share))
    lines.append(("all", round(whole["kernels"]), whole["bytes"] / 1e9, 1e3 * whole[H100], "100 %"))
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
            f"That is {100 * useful / whole[H100] / peak:.0f} % of the peak (reckoned; {useful / 1e12:.1f} TFLOP, "
            f"{PAIRS} of query and key, as a plan counts; {100 * visible / whole[H100] / peak:.0f} % by the visible "
            f"ones alone). A step of {method_rows.ACCUMULATED} micro-batches has more, for each of them "
            f"{1e3 * beside:.1f} ms: adding each gradient to the one before takes "
            f"{1e3 * adding:.1f} ms in all but the first, clipping and AdamW {1e3 * update['update_seconds']:.1f} ms a "
            f"step. So it is {1e3 * total:.0f} ms a micro-batch, {100 * useful / total / peak:.0f} % "
            f"({100 * visible / total / peak:.0f} % by the visible pairs). Not compiled, the passes alone are reckoned "
            f"{1e3 * update['seconds']:.0f} ms." + " Measured: nothing yet." * (not measured),
            "",
            "## Methods beside the baseline",
            "",
            "One forward and backward pass each; *step, of the baseline's* has additions and the update besides, each "
            "kernel by itself on each machine, and is where `relative_step_time` of `config/machines.yaml` is from. "
            "Planned whole, or with few layers, of which what a layer adds was multiplied. The other machines are "
            "reckoned with "
            + " and ".join(
                f"{_format_rates(machine_rates)} ({name.upper()})"
                for name, machine_rates in RATES.items()
                if name != "h100"
            )
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
                    *method_rows.timing_columns(measured),
                ),
                [_beside_baseline(study.label(row["method"]), row, relative(rows), measured) for row in rows],
            ),
            "",
        ]
    )


def relative(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Machine -> method -> its step over the baseline's, by the kernels of its passes, additions and the update."""
    baseline = next(row for row in rows if row["method"] == method_rows.BASELINE)
    ratios: dict[str, dict[str, float]] = {}
    for name, rates in RATES.items():
        beside = _beside_passes(baseline["update"], rates)
        times = {
            row["method"]: beside + sum(entry[seconds_on(name)] for entry in row["groups"].values()) for row in rows
        }
        ratios[name] = {method: seconds / times[method_rows.BASELINE] for method, seconds in times.items()}
    return ratios


def _adding(update: dict[str, Any], rates: Rates) -> float:
    """Seconds of adding a micro-batch's gradients to the ones before: both are read, and the sum is written."""
    return 3 * float(update["parameter_bytes"]) / rates.bytes


def _beside_passes(update: dict[str, Any], rates: Rates) -> float:
    """Seconds a micro-batch takes on top of its passes: additions (all but a step's first), its share of the update."""
    parts = method_rows.ACCUMULATED
    return ((parts - 1) * _adding(update, rates) + update["update_bytes"] / rates.bytes) / parts


def _format_rates(rates: Rates) -> str:
    return (
        f"{rates.bytes / 1e12:g} TB/s, {rates.products / 1e12:g} TFLOP/s, {rates.flash / 1e12:g} in flash attention "
        f"and {rates.ours / 1e12:g} in our kernels"
    )


def _beside_baseline(
    label: str, row: dict[str, Any], ratios: dict[str, dict[str, float]], measured: method_rows.Measured
) -> tuple[Any, ...]:
    whole = {key: sum(entry[key] for entry in row["groups"].values()) for key in COUNTED}
    return (
        label, round(whole["kernels"]), whole["bytes"] / 1e9, 1e3 * whole[H100],
        *(f"{each[row['method']]:.2f}" for each in ratios.values()), row["planned"],
        *method_rows.timing_cells(measured, row["method"]),
    )  # fmt: skip
