"""What would shorten a compiled step: each idea's estimated gain, what of it needs no device, what all come to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from benchmarks.fake_device import method_rows
from benchmarks.fake_device.machine_rates import H100, RATES
from benchmarks.gpu_check.results_page import table
from plumbline.model import next_token_loss
from plumbline.specs.spec import ModelSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Idea:
    """Something that would shorten a step.

    Attributes:
        gain: the name of its gain among those of `_gains`; `gain_text` states it, with that gain's milliseconds.
        ours: whether it is this project's to do.
        here: what can be made and tested without a device; empty for nothing.
        there: what has to be seen on a device.
    """

    label: str
    gain: str
    gain_text: str
    here: str
    there: str
    ours: bool = True


#: What is left to do.
IDEAS = (
    Idea(
        label="micro-batches of 16 sequences instead of 8",
        gain="accumulation",
        gain_text="{accumulation:.1f} ms for each 16 sequences: half as many additions of gradients",
        here="all: the trainer takes them; the peak by fake tensors",
        there="what libraries leave free: by count a rank takes 71.1 GB (`benchmarks.fake_device --sequences 16`)",
    ),
    Idea(
        label="bfloat16 copies of the weights, kept over the micro-batches of a step",
        gain="casts",
        gain_text="{casts:.1f} ms a micro-batch but for the first",
        here="all: the same bits as without, dropped by each update",
        there="the gain alone",
    ),
    Idea(
        label="gradients added to the float32 ones by the kernel that widens them",
        gain="fused_accumulation",
        gain_text="{fused_accumulation:.1f} ms a micro-batch but for the first",
        here="the hook of each parameter, and its sums",
        there="a kernel of ours in that hook: Inductor does not write to `.grad`",
    ),
    Idea(
        label="heads rotated in the layout in which the projection leaves them",
        gain="heads",
        gain_text="{heads:.1f} ms: copies of values and outputs by head",
        here="the numbers, and Inductor's plan without the copies",
        there="how fast flash attention is with heads apart",
    ),
    Idea(
        label="rotary positions and the split into heads as one kernel of ours, or as the product's epilogue",
        gain="rotary",
        gain_text="up to {rotary:.1f} ms",
        here="the kernel's numbers, in Triton's interpreter",
        there="what an epilogue costs the product",
    ),
    Idea(
        label="a norm's gradient, its gain's included, in one kernel",
        gain="norms",
        gain_text="up to {norms:.1f} ms (Inductor has the rest of norm, addition and cast in one)",
        here="the kernel's numbers, in Triton's interpreter",
        there="whether it is faster than Inductor's sums over tokens, which it makes in parts",
    ),
    Idea(
        label="clipping inside AdamW's kernel",
        gain="clip",
        gain_text="{clip:.1f} ms a step: gradients are not written and read once more",
        here="the kernel's numbers, in Triton's interpreter (`grad_scale=` of torch's writes gradients back)",
        there="the gain alone",
    ),
    Idea(
        label="the loss in one chunk",
        gain="chunks",
        gain_text="{chunks:.1f} ms: the head's gradient is added up once",
        here="all: a constant",
        there="whether that is worth {chunk_gigabytes:.1f} GB of logits more at the peak",
    ),
    Idea(
        label="products at 700 TFLOP/s instead of 620",
        gain="products",
        gain_text="{products:.1f} ms",
        here="",
        there="what cuBLAS does with these shapes, and at which clock",
        ours=False,
    ),
)
#: The share of the peak that is asked for.
WANTED = 0.55


def section(
    model: ModelSpec, sequences: int, baseline: dict[str, Any], total: float, needed: float, at_peak: float
) -> list[str]:
    """The ideas with their gains, and what they come to.

    Args:
        baseline: its row.
        total: seconds of a micro-batch, with its share of the update; `needed`: those that are asked for.
        at_peak: those of its operations at the device's peak.
    """
    more, later = _logits(model, sequences)
    gains, each = _gains(baseline["groups"], baseline["update"], later)
    numbers = {name: 1e3 * gain for name, gain in gains.items()} | {"chunk_gigabytes": more / 1e9}
    lines = [
        (
            idea.label,
            idea.gain_text.format(**numbers),
            1e3 * each[idea.gain],
            idea.here or "nothing",
            idea.there.format(**numbers),
        )
        for idea in IDEAS
    ]
    columns = ("what", "gain, reckoned", "ms of a micro-batch in a step", "without a device", "waits for a device")

    def without(ideas: list[Idea]) -> str:
        """What is left of a micro-batch, were all these gains had in full."""
        rest = total - sum(each[idea.gain] for idea in ideas)
        short = f"{1e3 * (rest - needed):.1f} ms are missing to {100 * WANTED:.0f} %"
        share = f"{1e3 * rest:.1f} ms, {100 * at_peak / rest:.1f} %"
        return f"{1e3 * (total - rest):.1f} ms, which leaves {share}: " + (short if rest > needed else "enough")

    ours, rest = [idea for idea in IDEAS if idea.ours], [idea for idea in IDEAS if not idea.ours]
    tested = [idea for idea in ours if idea.here.startswith("all")]
    alone = total - max(each.values()) <= needed
    untested = 1e3 * sum(each[idea.gain] for idea in ours if idea not in tested)
    return [
        *table(columns, lines),
        "",
        f"{'One' if alone else 'No one'} of these is enough. "
        f"All {len(IDEAS)} together come to at most {without(list(IDEAS))}. The {len(ours)} "
        f"that are ours to do (all but {', '.join(idea.label for idea in rest)}) come to at most {without(ours)}. Of "
        f"these, {len(tested)} can be made and tested whole without a device, at most {without(tested)}; of the other "
        f"{len(ours) - len(tested)} ({untested:.1f} ms) only the numbers can, and whether they gain anything waits for "
        "a device. Gains are reckoned and overlap (fewer additions leave less to be fused), so that less comes of them "
        "together.",
    ]


def _logits(model: ModelSpec, sequences: int) -> tuple[float, float]:
    """Bytes of bfloat16 logits beyond the first chunk's, and of the head's gradients of the chunks after it."""
    rows, chunk = sequences * (model.context - 1), next_token_loss.CHUNK_BYTES // (4 * model.vocabulary)
    return 2.0 * model.vocabulary * (rows - chunk), 2.0 * model.vocabulary * model.width * (math.ceil(rows / chunk) - 1)


def _gains(groups: dict[str, Any], update: dict[str, Any], later: float) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds that each idea saves where it is at work, and of a micro-batch in a step.

    Args:
        later: bytes of the head's gradients of later chunks, which are read to be added up.
    """
    weights, parts, rates = update["parameter_bytes"], method_rows.ACCUMULATED, RATES["h100"]
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
        "chunks": later / rates.bytes,
        "products": products * (1 - rates.products / 700e12),
    }
    # Of a step's micro-batches all but the first, one of two, and the step's end.
    shares = {"casts": (parts - 1) / parts, "fused_accumulation": (parts - 1) / parts}
    shares |= {"accumulation": 1 / 2, "clip": 1 / parts}
    return gains, {name: gain * shares.get(name, 1.0) for name, gain in gains.items()}
