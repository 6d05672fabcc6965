"""Every mixer and variant of the studies, and every back end of softmax attention, against its reference in float64.

In bfloat16 at the paper's head width, with grouped heads and a length that no block divides: outputs and gradients of
`Mixer.forward`, compared with those of `Mixer.reference` for the same numbers in double precision.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

import torch

from benchmarks.gpu_check import mixer_calls
from benchmarks.gpu_check.sections import Rows, SectionCall
from plumbline.model.numerics import numerics

HEADS, GROUPS, BATCH = 8, 2, 2


def rows(call: SectionCall) -> Rows:
    """A row for each mixer and each back end."""
    softmax = {"name": "softmax"}
    mixers: Rows = {name: functools.partial(_compare, slot, call) for name, slot in mixer_calls.slots().items()}
    return mixers | {
        f"softmax by {back_end}": functools.partial(_compare, softmax, call, back_end)
        for back_end in mixer_calls.back_ends(call.device)
    }


def _compare(slot: Mapping[str, Any], call: SectionCall, back_end: str | None = None) -> dict[str, Any]:
    device, (width, length) = call.device, (16, 37) if call.rehearsal else (64, 1111)
    numerics(torch.device(device))
    exact = mixer_calls.build_mixer(slot, width, heads=HEADS, groups=GROUPS).to(device).double()
    draw = torch.Generator(device).manual_seed(7)
    for value in exact.parameters():
        value.data += 0.5 * torch.randn(value.shape, generator=draw, device=device, dtype=value.dtype)
    single = copy.deepcopy(exact).float()
    inputs = mixer_calls.draw_inputs(exact, HEADS, width, length, BATCH, device)
    mask = mixer_calls.causal(length, device)
    doubles = [x.double() for x in inputs]
    do = mixer_calls.draw_gradient(exact.reference(*doubles, mask))
    expected = mixer_calls.call_both_ways(exact.reference, doubles, exact, mask, do)
    with mixer_calls.held_to(back_end):
        # Before the call: it tells torch's dispatcher.
        path = back_end or mixer_calls.find_path(single, inputs[0], mask)
        outputs = mixer_calls.call_both_ways(single, inputs, single, mask, do)
    return {"path": path, "width": width, "length": length} | mixer_calls.compare(outputs, expected)
