"""What the device reaches by itself, and how far attention's back ends are from it.

Operations of attention are the products of visible pairs of query and key; backward has two for each of forward's, and
the scores once more, which a kernel does not keep.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from benchmarks.gpu_check import base_scale_specs, mixer_calls
from benchmarks.gpu_check.device_under_test import milliseconds, peak_gib
from benchmarks.gpu_check.sections import Rows, SectionCall
from plumbline.model.flops import products_per_pair
from plumbline.model.numerics import numerics

#: Mixers of our own kernels that are timed next to softmax attention.
OURS = ("softpick", "selective")


def rows(call: SectionCall) -> Rows:
    """A large copy, bytes read and written counted; a square matrix product of random numbers; attention calls."""
    attention: Rows = {
        f"attention, {name}": functools.partial(time_attention, {"name": "softmax"}, call, name)
        for name in mixer_calls.back_ends(call.device)
    }
    attention |= {f"attention, {name}": functools.partial(time_attention, {"name": name}, call) for name in OURS}
    return {"copy": functools.partial(copy, call), "product, bfloat16": functools.partial(multiply, call), **attention}


def copy(call: SectionCall) -> dict[str, Any]:
    """A copy of four gibibytes."""
    source = torch.randint(256, (2**20 if call.rehearsal else 2**32,), dtype=torch.uint8, device=call.device)
    target = torch.empty_like(source)
    duration = milliseconds(lambda: target.copy_(source), call.rehearsal)
    return {"ms": duration, "GB/s": 2 * source.numel() / duration / 1e6}


def multiply(call: SectionCall) -> dict[str, Any]:
    """A product of two square matrices."""
    numerics(torch.device(call.device))
    size = 128 if call.rehearsal else 8192
    a, b = (torch.randn(size, size, device=call.device).bfloat16() for _ in range(2))
    duration = milliseconds(lambda: a @ b, call.rehearsal)
    return {"ms": duration, "TFLOP/s": 2 * size**3 / duration / 1e9}


def time_attention(slot: Mapping[str, Any], call: SectionCall, back_end: str | None = None) -> dict[str, Any]:
    """Time forward and backward pass of a mixer's call at the base scale's shapes."""
    spec = base_scale_specs.runs(call.preset)[base_scale_specs.BASELINE].model
    numerics(torch.device(call.device))
    mixer = mixer_calls.build_mixer(
        slot, spec.head_width, heads=spec.heads, groups=spec.key_value_heads, context=spec.context
    ).to(call.device)
    batch = max((64 if call.rehearsal else 16384) // spec.context, 1)
    inputs = mixer_calls.draw_inputs(mixer, spec.heads, spec.head_width, spec.context, batch, call.device)
    mask = mixer_calls.causal(spec.context, call.device)
    leaves = [x.requires_grad_() for x in inputs]
    with mixer_calls.held_to(back_end):
        path = back_end or mixer_calls.find_path(mixer, inputs[0], mask)
        do = torch.randn_like(mixer(*leaves, mask))

        def both() -> None:
            torch.autograd.grad(mixer(*leaves, mask), leaves, do)

        duration = milliseconds(both, call.rehearsal)
    pairs = batch * spec.context * (spec.context + 1) // 2
    operations = 6 * pairs * products_per_pair(mixer, spec) + 2 * pairs * spec.heads * spec.head_width
    return {"ms": duration, "TFLOP/s": operations / duration / 1e9, "path": path, "GiB": peak_gib(call.rehearsal)}
