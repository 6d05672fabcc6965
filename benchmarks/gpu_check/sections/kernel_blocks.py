"""Which rows a program of a kernel holds and walks over, and by how many warps and stages: times at paper size.

The default of the table (`plumbline.model.kernels.block_choices`) is by what the compiler says of registers and shared
memory; this is what it costs. A row is a kernel with one choice, the first of which is that default: forward and
backward as the mixer takes them, and how far its numbers are from those of the table's choice. One that needs more
shared memory than the device has fails, and says so.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from benchmarks.gpu_check import base_scale_specs, mixer_calls
from benchmarks.gpu_check.sections import Rows, SectionCall, ceilings
from plumbline.model.kernels.selection import TABLE
from plumbline.model.kernels.tiles import BlockSizes

#: Rows held, rows walked, warps, stages. All kernels with one choice before the next: (128, 64, 8, 2) is the one whose
#: products the compiler makes wide without spilling.
CHOICES = (
    (128, 32, 8, 2), (128, 64, 8, 2), (64, 64, 4, 2), (64, 32, 4, 3), (128, 64, 4, 2), (128, 32, 4, 2),
    (128, 64, 8, 3), (64, 32, 4, 2), (128, 32, 8, 3), (64, 64, 4, 3), (128, 128, 8, 2), (64, 64, 8, 2),
)  # fmt: skip


def rows(call: SectionCall, *slots: Mapping[str, Any]) -> Rows:
    """A row for each choice and kernel; two choices in a rehearsal."""
    return {
        f"{mixer_calls.label(slot)}, {'/'.join(map(str, choice))}": functools.partial(_measure, slot, choice, call)
        for choice in (CHOICES[:2] if call.rehearsal else CHOICES)
        for slot in slots
    }


def _measure(slot: Mapping[str, Any], choice: tuple[int, int, int, int], call: SectionCall) -> dict[str, Any]:
    spec = base_scale_specs.runs(call.preset)[base_scale_specs.BASELINE].model
    sizes = {"heads": spec.heads, "groups": spec.key_value_heads, "context": spec.context}
    mixer = mixer_calls.build_mixer(slot, spec.head_width, **sizes).to(call.device)
    length = spec.context - 3  # not a whole number of blocks: the last one has an edge of its own
    inputs = mixer_calls.draw_inputs(mixer, spec.heads, spec.head_width, length, 1, call.device)
    mask = mixer_calls.causal(length, call.device)
    do = mixer_calls.draw_gradient(mixer(*inputs, mask))
    expected = mixer_calls.call_both_ways(mixer, inputs, mixer, mask, do)
    with launch_with(mixer.kernel, choice, call):
        outputs = mixer_calls.call_both_ways(mixer, inputs, mixer, mask, do)
        row = ceilings.time_attention(slot, call)
    row |= mixer_calls.compare(outputs, expected)
    return row | {"choice": list(choice), "kernel": mixer.kernel, "head width": spec.head_width}


def launch_with(kernel: str, choice: tuple[int, int, int, int], call: SectionCall) -> AbstractContextManager[Any]:
    """Have a kernel launched with these blocks; a processor runs none."""
    if call.rehearsal:
        return nullcontext()
    blocks = BlockSizes(**dict(zip(("held", "walked", "warps", "stages"), choice, strict=True)))
    return patch(f"{TABLE[kernel].module}.blocks_for", lambda kernel, q_BHTW: blocks)
