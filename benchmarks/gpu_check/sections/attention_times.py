"""How long attention takes, forward and backward, next to torch's fused kernel and next to what cannot be beaten.

The floor of a call is the larger of two times: its operations at the rate of the large matrix product of the first
section, and its bytes at the rate of the large copy. Operations are the products of visible pairs of query and key;
backward has two for each of forward's, and the scores once more, which a kernel does not keep. Bytes are each tensor
once: q, k, v read and the output written; then those, the output and its gradient read, and three gradients written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table
from benchmarks.gpu_check.sections.device_ceilings import read_ceilings

if TYPE_CHECKING:
    import torch

    from plumbline.model.mixers._base import Mixer
    from plumbline.specs.spec import ModelSpec

TITLE = "Attention beside flash attention and the floor"
SHARE = 0.25

FLASH = "flash"


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """For each length torch's fused kernel, then each mixer of the study's methods as it stands there."""
    specs = base_scale_specs.runs(setting.size.preset)
    spec = specs[base_scale_specs.BASELINE].model
    chosen = [specs[name].model.slots["mixer"] for name in base_scale_specs.methods() if name in specs]
    mixers = {slot["name"]: slot for slot in chosen}
    return {
        f"{name}, T {length}": functools.partial(time_call, slot, length, spec, setting)
        for length in setting.size.lengths
        for name, slot in {FLASH: None, **mixers}.items()
    }


def time_call(chosen: dict[str, Any] | None, length: int, spec: ModelSpec, setting: SectionCall) -> dict[str, Any]:
    """One call's times; `chosen` None is torch's kernel alone."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from benchmarks.gpu_check.device_under_test import forget_peak, milliseconds, peak_gib
    from benchmarks.gpu_check.sections.kernel_accuracy import build_mixer, path
    from plumbline.model.attention_mask import AttentionMask
    from plumbline.model.numerics import numerics

    device, size = setting.device, setting.size
    numerics(torch.device(device))
    mixer = build_mixer(
        chosen or {"name": "softmax"}, spec.head_width, heads=spec.heads, groups=spec.key_value_heads, context=length
    ).to(device)
    batch = max(size.tokens // length, 1)
    sizes = [(batch, length, heads, spec.head_width) for heads in (spec.heads, mixer.groups, mixer.groups)]
    tensors = [torch.randn(shape, device=device).bfloat16().transpose(1, 2) for shape in sizes]
    inputs = [x.requires_grad_() for x in tensors]
    attention_mask = AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device=device), None, None)

    def forward() -> torch.Tensor:
        if chosen is not None:
            return mixer(*inputs, attention_mask)
        return scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)

    do = torch.randn_like(forward())

    def both() -> None:
        torch.autograd.grad(forward(), inputs, do)

    def alone() -> None:
        with torch.no_grad():
            forward()

    how = {"repeats": size.repeats, "warmup": size.warmup}
    timings = {"forward": milliseconds(alone, device, **how)}
    forget_peak(device)
    timings["both"] = milliseconds(both, device, **how)
    operations, moved = counts(mixer, spec, batch, length)
    return {
        "mixer": FLASH if chosen is None else chosen["name"],
        "length": length,
        "batch": batch,
        "path": "scaled_dot_product_attention" if chosen is None else path(mixer, inputs[0], attention_mask),
        "milliseconds": timings,
        "peak_gib": peak_gib(device),
        "operations": operations,
        "bytes": moved,
    }


def counts(mixer: Mixer, spec: ModelSpec, batch: int, length: int) -> tuple[dict[str, int], dict[str, int]]:
    """Least operations, and least bytes in bfloat16, of the forward pass and of both passes."""
    from plumbline.model.flops import products_per_pair

    pairs = batch * length * (length + 1) // 2
    forward = 2 * pairs * products_per_pair(mixer, spec)
    scores = 2 * pairs * spec.heads * spec.head_width
    head = 2 * batch * length * spec.head_width
    inputs, out = head * (spec.heads + 2 * mixer.groups), head * mixer.output_heads
    return (
        {"forward": forward, "both": 3 * forward + scores},
        {"forward": inputs + out, "both": (inputs + out) + (inputs + 2 * out) + inputs},
    )


def page(state: MeasuredRows) -> list[str]:
    """Times, over flash attention's of the same length, over the floor."""
    measured = state.rows("attention_times")
    rate, bandwidth = read_ceilings(state)
    flash = {row["length"]: row["milliseconds"] for row in measured.values() if row["mixer"] == FLASH}
    lines = []
    for key, row in measured.items():
        cells: list[Any] = [key, row["batch"], row["path"]]
        for pass_name in ("forward", "both"):
            duration, beside = row["milliseconds"][pass_name], flash.get(row["length"])
            floor = floor_of(row, pass_name, rate, bandwidth)
            cells += [duration, duration / beside[pass_name] if beside else None, duration / floor if floor else None]
        lines.append((*cells, row["peak_gib"]))
    columns = ["call", "batch", "path", "forward ms", "over flash", "over floor"]
    return table([*columns, "both ms", "over flash", "over floor", "GiB"], lines)


def floor_of(row: dict[str, Any], pass_name: str, rate: float | None, bandwidth: float | None) -> float | None:
    """Milliseconds that no call of these operations and bytes can be below; None without the ceilings."""
    if not rate or not bandwidth:
        return None
    return 1e3 * max(row["operations"][pass_name] / rate, row["bytes"][pass_name] / bandwidth)
