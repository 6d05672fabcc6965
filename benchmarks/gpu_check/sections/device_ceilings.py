"""What the device reaches by itself, and how far attention's back ends are from it.

The floor of an attention call is the larger of two times: its operations at the rate of the matrix product, and its
bytes at the rate of the copy. Operations are the products of visible pairs of query and key; backward has two for each
of forward's, and the scores once more, which a kernel does not keep. Bytes are each tensor once: q, k, v read and the
output written; then those, the output and its gradient read, and three gradients written.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

if TYPE_CHECKING:
    from plumbline.model.mixers._base import Mixer
    from plumbline.specs.spec import ModelSpec

TITLE = "Ceilings of the device, and attention's back ends"

COPY, PRODUCT = "copy", "product bfloat16"
FLASH = "flash"
#: Back ends of torch's fused attention by device -> torch's names for them.
BACK_ENDS = {"cuda": {FLASH: "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}, "cpu": {FLASH: "FLASH_ATTENTION"}}
#: Mixers of our own kernels that are timed beside them.
OURS = ("softpick", "selective")


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A large copy, bytes read and written counted; a square matrix product of random numbers; attention calls."""
    import torch

    from benchmarks.gpu_check.device_under_test import milliseconds
    from plumbline.model.numerics import numerics

    size, how = setting.size, {"repeats": setting.size.repeats, "warmup": setting.size.warmup}

    def copy() -> dict[str, Any]:
        source = torch.randint(256, (size.copied,), dtype=torch.uint8, device=setting.device)
        target = torch.empty_like(source)
        duration = milliseconds(lambda: target.copy_(source), setting.device, **how)
        return {"milliseconds": duration, "bytes_per_second": 2e3 * size.copied / duration}

    def product() -> dict[str, Any]:
        numerics(torch.device(setting.device))
        a, b = (torch.randn(size.product, size.product, device=setting.device).bfloat16() for _ in range(2))
        duration = milliseconds(lambda: a @ b, setting.device, **how)
        return {"milliseconds": duration, "operations_per_second": 2e3 * size.product**3 / duration}

    spec = base_scale_specs.runs(size.preset)[base_scale_specs.BASELINE].model
    slots = [{"name": "softmax", "back_end": name} for name in BACK_ENDS[setting.device]]
    slots += [{"name": name} for name in OURS]
    calls = {
        f"attention, {slot.get('back_end', slot['name'])}": functools.partial(time_call, slot, spec, setting)
        for slot in slots
    }
    return {COPY: copy, PRODUCT: product, **calls}


def time_call(slot: dict[str, Any], spec: ModelSpec, setting: SectionCall) -> dict[str, Any]:
    """Times of a mixer's call of the model's context; `back_end`, if any, is the one that torch is held to."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from benchmarks.gpu_check.device_under_test import forget_peak, milliseconds, peak_gib
    from benchmarks.gpu_check.sections.kernel_accuracy import build_mixer, path
    from plumbline.model.attention_mask import AttentionMask
    from plumbline.model.numerics import numerics

    device, size, length = setting.device, setting.size, spec.context
    numerics(torch.device(device))
    chosen = {key: value for key, value in slot.items() if key != "back_end"}
    back_end = BACK_ENDS[device][slot["back_end"]] if "back_end" in slot else None
    mixer = build_mixer(chosen, spec.head_width, heads=spec.heads, groups=spec.key_value_heads, context=length)
    mixer.to(device)
    batch = max(size.tokens // length, 1)
    sizes = [(batch, length, heads, spec.head_width) for heads in (spec.heads, mixer.groups, mixer.groups)]
    tensors = [torch.randn(shape, device=device).bfloat16().transpose(1, 2) for shape in sizes]
    inputs = [x.requires_grad_() for x in tensors]
    attention_mask = AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device=device), None, None)

    def both() -> None:
        torch.autograd.grad(mixer(*inputs, attention_mask), inputs, do)

    def alone() -> None:
        with torch.no_grad():
            mixer(*inputs, attention_mask)

    how = {"repeats": size.repeats, "warmup": size.warmup}
    with contextlib.nullcontext() if back_end is None else sdpa_kernel(getattr(SDPBackend, back_end)):
        do = torch.randn_like(mixer(*inputs, attention_mask))
        timings = {"forward": milliseconds(alone, device, **how)}
        forget_peak(device)
        timings["both"] = milliseconds(both, device, **how)
    operations, moved = counts(mixer, spec, batch, length)
    return {
        "batch": batch,
        "path": slot.get("back_end") or path(mixer, inputs[0], attention_mask),
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
    """Ceilings; then calls, over flash attention's time and over the floor."""
    measured = state.rows("device_ceilings")
    calls = {key: row for key, row in measured.items() if "batch" in row}
    rate = measured.get(PRODUCT, {}).get("operations_per_second")
    bandwidth = measured.get(COPY, {}).get("bytes_per_second")
    ceilings = [
        (key, row["milliseconds"], _scale(row, "bytes_per_second", 1e9), _scale(row, "operations_per_second", 1e12))
        for key, row in measured.items()
        if key not in calls
    ]
    lines, flash = [], calls.get(f"attention, {FLASH}")
    for key, row in calls.items():
        cells: list[Any] = [key, row["batch"], row["path"]]
        for pass_name in ("forward", "both"):
            duration = row["milliseconds"][pass_name]
            floor = floor_of(row, pass_name, rate, bandwidth)
            over_flash = duration / flash["milliseconds"][pass_name] if flash else None
            cells += [duration, over_flash, duration / floor if floor else None]
        lines.append((*cells, row["peak_gib"]))
    columns = ("call", "batch", "path", "forward ms", "over flash", "over floor")
    text = table(("ceiling", "ms", "GB/s", "TFLOP/s"), ceilings)
    return [*text, "", *table((*columns, "both ms", "over flash", "over floor", "GiB"), lines)] if lines else text


def floor_of(row: dict[str, Any], pass_name: str, rate: float | None, bandwidth: float | None) -> float | None:
    """Milliseconds that no call of these operations and bytes can be below; None without the ceilings."""
    if not rate or not bandwidth:
        return None
    return 1e3 * max(row["operations"][pass_name] / rate, row["bytes"][pass_name] / bandwidth)


def _scale(row: dict[str, Any], name: str, unit: float) -> float | None:
    return row[name] / unit if name in row else None
