"""Which rows a program of a kernel holds and walks over, and by how many warps and stages: times at paper size.

The default of the table (`plumbline.model.kernels.block_choices`) is by what the compiler says of registers and shared
memory; this is what it costs. The first choice is that default at this width. A row is a kernel with one choice:
forward and backward as the mixer takes them, and how far its numbers are from those of the table's choice. One that
needs more shared memory than the device has fails, and says so. `python -m benchmarks.gpu_check.fill_block_choices`
puts the fastest into the table.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table
from benchmarks.gpu_check.sections import device_ceilings, kernel_accuracy

TITLE = "Blocks of softpick's and selective attention's kernels"
AHEAD = 16

#: Mixers by the kernels that their weights run through.
MIXERS: tuple[dict[str, Any], ...] = (
    {"name": "softpick"},
    {"name": "selective"},
)
#: Rows held, rows walked, warps, stages. All kernels with one choice before the next: (128, 64, 8, 2) is the one whose
#: products the compiler makes wide without spilling.
CHOICES = (
    (128, 32, 8, 2),
    (128, 64, 8, 2),
    (64, 64, 4, 2),
    (64, 32, 4, 3),
    (128, 64, 4, 2),
    (128, 32, 4, 2),
    (128, 64, 8, 3),
    (64, 32, 4, 2),
    (128, 32, 8, 3),
    (64, 64, 4, 3),
    (128, 128, 8, 2),
    (64, 64, 8, 2),
)


def rows(setting: SectionCall, mixers: tuple[dict[str, Any], ...] = MIXERS) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each choice and kernel; two choices at toy sizes."""
    choices = CHOICES if setting.size.compiles else CHOICES[:2]
    return {
        f"{kernel_accuracy.label(mixer)}, {'/'.join(map(str, choice))}": functools.partial(
            _measure, mixer, choice, setting
        )
        for choice in choices
        for mixer in mixers
    }


def _measure(chosen: dict[str, Any], choice: tuple[int, int, int, int], setting: SectionCall) -> dict[str, Any]:
    import torch

    from plumbline.model.attention_mask import AttentionMask

    spec = base_scale_specs.runs(setting.size.preset)[base_scale_specs.BASELINE].model
    build = functools.partial(
        kernel_accuracy.build_mixer, chosen, spec.head_width, heads=spec.heads, groups=spec.key_value_heads
    )
    mixer = build(context=spec.context).to(setting.device)
    draw = torch.Generator(setting.device).manual_seed(5)
    # Not a whole number of blocks: the last one has an edge of its own.
    length = spec.context - 3
    inputs = [
        torch.randn(1, length, heads, spec.head_width, generator=draw, device=setting.device).bfloat16().transpose(1, 2)
        for heads in (spec.heads, mixer.groups, mixer.groups)
    ]
    attention_mask = AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device=setting.device), None, None)
    expected = kernel_accuracy.results(mixer, inputs, mixer, attention_mask)
    with launch_with(mixer.kernel, choice, setting.device):
        outputs = kernel_accuracy.results(mixer, inputs, mixer, attention_mask)
        row = device_ceilings.time_call(chosen, spec, setting)
    pairs = zip(outputs, expected, strict=True)
    errors = [
        ((output.double() - reference.double()).norm() / reference.double().norm()).item()
        for output, reference in pairs
    ]
    finite = all(error == error for error in errors)
    facts = {"label": kernel_accuracy.label(chosen), "choice": list(choice), "error": max(errors) if finite else "nan"}
    facts |= {"kernel": mixer.kernel, "width": spec.head_width}
    return row | facts | {"equal": all(error <= kernel_accuracy.TOLERANCE["bfloat16"] for error in errors)}


@contextlib.contextmanager
def launch_with(kernel: str, choice: tuple[int, int, int, int], device: str) -> Iterator[None]:
    """Have a kernel launched with these blocks; a processor runs none."""
    if device == "cpu":
        yield
        return
    from plumbline.model.kernels.selection import TABLE
    from plumbline.model.kernels.tiles import BlockSizes

    rows_held, rows_walked, warps, stages = choice
    module: Any = importlib.import_module(str(TABLE[kernel].module))
    before = module.blocks_for
    module.blocks_for = lambda kernel, q_BHTW: BlockSizes(
        held=rows_held, walked=rows_walked, warps=warps, stages=stages
    )
    try:
        yield
    finally:
        module.blocks_for = before


def page(state: MeasuredRows, section: str = "kernel_block_sizes") -> list[str]:
    """Times by kernel and choice, over those of the first choice."""
    measured = state.rows(section)
    first = {row["label"]: row["milliseconds"] for row in measured.values() if row["choice"] == list(CHOICES[0])}
    lines = []
    for row in sorted(measured.values(), key=lambda row: (row["label"], row["milliseconds"]["both"])):
        cells: list[Any] = [row["label"], "/".join(map(str, row["choice"])), row["path"]]
        for pass_name in ("forward", "both"):
            today = first.get(row["label"])
            cells += [
                row["milliseconds"][pass_name],
                row["milliseconds"][pass_name] / today[pass_name] if today else None,
            ]
        lines.append((*cells, row["error"], row["equal"]))
    columns = ("kernel", "held/walked/warps/stages", "path", "forward ms", "over today's", "both ms", "over today's")
    return table((*columns, "off today's numbers", "equal"), lines)
