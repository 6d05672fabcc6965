"""The page of what compiled steps move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.fake_device import method_rows
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


def seconds_on(machine: str) -> str:
    """The name of a group's reckoned seconds on a machine."""
    return f"seconds_{machine}"


#: What is counted of a group of kernels.
COUNTED = ("kernels", "bytes", "operations", *map(seconds_on, RATES))
H100 = seconds_on("h100")


@dataclass(frozen=True, kw_only=True, slots=True)
class Idea:
    """Something that would shorten a step.

    Attributes:
        gain: the name of its gain among those of `_gains`; `words` say it, with that gain's milliseconds.
        ours: whether it is this project's to do.
        here: what can be made and tested without a device; empty for nothing.
        there: what has to be seen on a device.
    """

    what: str
    gain: str
    words: str
    here: str
    there: str
    ours: bool = True


#: What is left to do.
IDEAS = (
    Idea(
        what="micro-batches of 16 sequences instead of 8",
        gain="accumulation",
        words="{accumulation:.1f} ms for each 16 sequences: half as many additions of gradients",
        here="all: the trainer takes them; the peak by fake tensors",
        there="whether 80 GB hold it: activations are most of the peak",
    ),
    Idea(
        what="bfloat16 copies of the weights, kept over the micro-batches of a step",
        gain="casts",
        words="{casts:.1f} ms a micro-batch but for the first",
        here="all: the same bits as without, dropped by each update",
        there="the gain alone",
    ),
    Idea(
        what="gradients added to the float32 ones by the kernel that widens them",
        gain="fused_accumulation",
        words="{fused_accumulation:.1f} ms a micro-batch but for the first",
        here="the hook of each parameter, and its sums",
        there="a kernel of ours in that hook: Inductor does not write to `.grad`",
    ),
    Idea(
        what="heads rotated in the layout in which the projection leaves them",
        gain="heads",
        words="{heads:.1f} ms: copies of values and outputs by head",
        here="the numbers, and Inductor's plan without the copies",
        there="how fast flash attention is with heads apart",
    ),
    Idea(
        what="rotary positions and the split into heads as one kernel of ours, or as the product's epilogue",
        gain="rotary",
        words="up to {rotary:.1f} ms",
        here="the kernel's numbers, in Triton's interpreter",
        there="what an epilogue costs the product",
    ),
    Idea(
        what="a norm's gradient, its gain's included, in one kernel",
        gain="norms",
        words="up to {norms:.1f} ms (Inductor has the rest of norm, addition and cast in one)",
        here="the kernel's numbers, in Triton's interpreter",
        there="whether it is faster than Inductor's sums over tokens, which it makes in parts",
    ),
    Idea(
        what="clipping inside AdamW's kernel",
        gain="clip",
        words="{clip:.1f} ms a step: gradients are not written and read once more",
        here="the kernel's numbers, in Triton's interpreter (`grad_scale` of torch's writes gradients back)",
        there="the gain alone",
    ),
    Idea(
        what="the loss in one chunk",
        gain="chunks",
        words="{chunks:.1f} ms: the head's gradient is added up once",
        here="all: a constant",
        there="whether 0.8 GB more at the peak are there",
    ),
    Idea(
        what="products at 700 TFLOP/s instead of 620",
        gain="products",
        words="{products:.1f} ms",
        here="",
        there="what cuBLAS does with these shapes, and at which clock",
        ours=False,
    ),
)
#: The share of the peak that is asked for.
WANTED = 0.55


def page(rows: list[dict[str, Any]], sequences: int) -> str:
    """The page: the baseline by kind of kernel, its MFU, what is left to do, and methods beside it."""
    study, rates = study_config.load("transfer", "paper"), Rates()
    spec = base_scale_specs.runs("paper")[method_rows.BASELINE]
    baseline = next(row for row in rows if row["method"] == method_rows.BASELINE)
    groups = dict(sorted(baseline["groups"].items(), key=lambda item: -item[1][H100]))
    whole = {key: sum(entry[key] for entry in groups.values()) for key in COUNTED}
    update = baseline["update"]
    useful = counted(spec.model, sequences=sequences, causal=True)
    peak = 1e12 * machines.load("h100").peak_tflops
    adding, beside = _adding(update, rates), _beside_passes(update, rates)
    total = whole[H100] + beside
    measured = method_rows.measured(ROOT, "compiled_method_steps")
    context = spec.model.context
    lines = []
    for name, entry in groups.items():
        share = f"{100 * entry[H100] / whole[H100]:.0f} %"
        lines.append((name, round(entry["kernels"]), entry["bytes"] / 1e9, 1e3 * entry[H100], share))
    lines.append(("all", round(whole["kernels"]), whole["bytes"] / 1e9, 1e3 * whole[H100], "100 %"))
    needed = useful / (WANTED * peak)
    bound = groups["matrix products"][H100] + groups["attention"][H100]
    return "\n".join(
        [
            "# Where a compiled step's bytes go, on a GPU that is not there",
            "",
            "Inductor's own plan of kernels and its count of what each moves, for the transfer study's base scale "
            f"({sequences} sequences of {context} tokens, bfloat16), made with fake tensors on a faked H100; no code "
            "was compiled or run (`python -m benchmarks.fake_device.compiled_step`). "
            f"{'Reckoned, but for the column that is measured' if measured else '**No time here was measured**'}: "
            f"a kernel takes as long as its bytes at {rates.bytes / 1e12:g} TB/s or its operations at "
            f"{rates.products / 1e12:g} TFLOP/s (flash attention {rates.flash / 1e12:g}, our kernels "
            f"{rates.ours / 1e12:g}), whichever is longer.",
            "",
            "## The baseline, one forward and backward pass",
            "",
            *table(("kernels for", "number", "GB moved", "ms, reckoned", "share"), lines),
            "",
            f"That is {100 * useful / whole[H100] / peak:.0f} % of the peak (reckoned; {useful / 1e12:.1f} TFLOP, "
            f"visible pairs alone). A step of {method_rows.ACCUMULATED} micro-batches has more, for each of them "
            f"{1e3 * beside:.1f} ms: adding each gradient to the one before takes "
            f"{1e3 * adding:.1f} ms in all but the first, clipping and AdamW {1e3 * update['update_seconds']:.1f} ms a "
            f"step. So it is {1e3 * total:.0f} ms a micro-batch, {100 * useful / total / peak:.0f} %. Not compiled, "
            f"the passes alone are reckoned {1e3 * update['seconds']:.0f} ms."
            + " Measured: nothing yet."
            * (not measured),
            "",
            f"## What would take it to {100 * WANTED:.0f} %",
            "",
            f"{100 * WANTED:.0f} % are {1e3 * needed:.1f} ms a micro-batch. Products and attention alone are reckoned "
            f"{1e3 * bound:.0f} ms, so all else may take {1e3 * (needed - bound):.0f} ms.",
            "",
            *_ideas(groups, update, rates, total, needed, useful / peak),
            "",
            "Done, since it could be tested without a device: where the step is compiled the loss's target is "
            "subtracted by a comparison, with the same bits. Inductor then makes one kernel of a chunk's softmax and "
            "gradient and stores no float32 logits: 10.5 GB less by its count, 3.7 ms reckoned.",
            "",
            "## Methods beside the baseline",
            "",
            "One forward and backward pass each; *step, of the baseline's* has additions and the update besides, each "
            "kernel by itself on each machine, and is where `relative_step_time` of `config/machines.yaml` is from. Planned whole, or with few layers, of "
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
                    "micro-batch and update, ms, measured",
                ),
                [_beside_baseline(study.label(row["method"]), row, relative(rows), measured) for row in rows],
            ),
            "",
        ]
    )


def _ideas(
    groups: dict[str, Any], update: dict[str, Any], rates: Rates, total: float, needed: float, at_peak: float
) -> list[str]:
    """The ideas with their gains, and what they come to.

    Args:
        total: seconds of a micro-batch, with its share of the update; `needed`: those that are asked for.
        at_peak: those of its operations at the device's peak.
    """
    gains, each = _gains(groups, update, rates)
    milliseconds = {name: 1e3 * gain for name, gain in gains.items()}
    lines = [
        (one.what, one.words.format(**milliseconds), 1e3 * each[one.gain], one.here or "nothing", one.there)
        for one in IDEAS
    ]
    columns = ("what", "gain, reckoned", "ms of a micro-batch in a step", "without a device", "waits for a device")

    def without(taken: list[Idea]) -> str:
        """What is left of a micro-batch, were all these gains had in full."""
        left = total - sum(each[one.gain] for one in taken)
        short = f"{1e3 * (left - needed):.1f} ms are missing to {100 * WANTED:.0f} %"
        share = f"{1e3 * left:.1f} ms, {100 * at_peak / left:.1f} %"
        return f"{1e3 * (total - left):.1f} ms, which leaves {share}: " + (short if left > needed else "enough")

    ours, rest = [one for one in IDEAS if one.ours], [one for one in IDEAS if not one.ours]
    tested = [one for one in ours if one.here.startswith("all")]
    untested = 1e3 * sum(each[one.gain] for one in ours if one not in tested)
    return [
        *table(columns, lines),
        "",
        f"No one of these is enough. All {len(IDEAS)} together come to at most {without(list(IDEAS))}. The {len(ours)} "
        f"that are ours to do (all but {', '.join(one.what for one in rest)}) come to at most {without(ours)}. Of "
        f"these, {len(tested)} can be made and tested whole without a device, at most {without(tested)}; of the other "
        f"{len(ours) - len(tested)} ({untested:.1f} ms) only the numbers can, and whether they gain anything waits for "
        "a device. Gains are reckoned and overlap (fewer additions leave less to be fused), so that less comes of them "
        "together.",
    ]


def _gains(groups: dict[str, Any], update: dict[str, Any], rates: Rates) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds that each idea saves where it is at work, and of a micro-batch in a step."""
    weights, parts = update["parameter_bytes"], method_rows.ACCUMULATED
    products = groups["matrix products"][H100]
    gains = {
        "accumulation": 3 * weights / rates.bytes,
        "casts": 1.5 * weights / rates.bytes,
        # Widened: read in bfloat16, written in float32, read again to be added.
        "fused_accumulation": 2 * weights / rates.bytes,
        "heads": groups["queries, keys, values and heads"][H100],
        "rotary": groups["rotary positions"][H100],
        "norms": 0.3 * groups["norms and the residual stream"][H100],
        "clip": 2 * weights / rates.bytes,
        "chunks": 0.3e-3,
        "products": products * (1 - rates.products / 700e12),
    }
    # Of a step's micro-batches all but the first, one of two, and the step's end.
    shares = {"casts": (parts - 1) / parts, "fused_accumulation": (parts - 1) / parts}
    shares |= {"accumulation": 1 / 2, "clip": 1 / parts}
    return gains, {name: gain * shares.get(name, 1.0) for name, gain in gains.items()}


def relative(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Machine -> method -> its step over the baseline's, by the kernels of its passes, additions and the update."""
    baseline = next(row for row in rows if row["method"] == method_rows.BASELINE)
    found: dict[str, dict[str, float]] = {}
    for name, rates in RATES.items():
        beside = _beside_passes(baseline["update"], rates)
        taken = {
            row["method"]: beside + sum(entry[seconds_on(name)] for entry in row["groups"].values()) for row in rows
        }
        found[name] = {method: seconds / taken[method_rows.BASELINE] for method, seconds in taken.items()}
    return found


def _adding(update: dict[str, Any], rates: Rates) -> float:
    """Seconds of adding a micro-batch's gradients to the ones before: both are read, and the sum is written."""
    return 3 * float(update["parameter_bytes"]) / rates.bytes


def _beside_passes(update: dict[str, Any], rates: Rates) -> float:
    """Seconds beside a micro-batch's passes: additions in all but a step's first, and its share of the update."""
    parts = method_rows.ACCUMULATED
    return ((parts - 1) * _adding(update, rates) + update["update_bytes"] / rates.bytes) / parts


def _said(rates: Rates) -> str:
    return (
        f"{rates.bytes / 1e12:g} TB/s, {rates.products / 1e12:g} TFLOP/s, {rates.flash / 1e12:g} in flash attention "
        f"and {rates.ours / 1e12:g} in our kernels"
    )


def _beside_baseline(
    label: str, row: dict[str, Any], ratios: dict[str, dict[str, float]], measured: dict[str, float]
) -> tuple[Any, ...]:
    whole = {key: sum(entry[key] for entry in row["groups"].values()) for key in COUNTED}
    found = f"{1e3 * measured[row['method']]:.0f}" if row["method"] in measured else "not measured"
    return (
        label, round(whole["kernels"]), whole["bytes"] / 1e9, 1e3 * whole[H100],
        *(f"{each[row['method']]:.2f}" for each in ratios.values()), row["planned"], found,
    )  # fmt: skip
