"""What attention kernels cost in counts, next to flash attention and explicit weights; no GPU is needed.

    python -m benchmarks.attention_kernels               # writes benchmarks/attention_kernels.md
    python -m benchmarks.attention_kernels --measure-times        # on a GPU: milliseconds too

One layer of the transfer study at paper size: 32 heads of width 64, 8 key/value heads, bfloat16, one sequence. Bytes
and operations are formulas (`benchmarks.kernel_costs`), which the tests hold equal to what the kernels do in Triton's
interpreter. Registers and shared memory are the compiler's word for GPUs that are not here. Times are of forward and
backward passes together: the median of 20, after 5 that are not counted, on an idle device.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.kernel_compile_check import compile_kernels
from benchmarks.kernel_costs import COSTS, AttentionShape, count_kept_bytes, count_moved_bytes, operations
from benchmarks.machine_description import describe
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import on_meta
from plumbline.model.mixers._base import Mixer
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec

LENGTHS = (1024, 2048, 4096, 8192, 16384)
HEADS, GROUPS, WIDTH = 32, 8, 64
#: Kernel -> a mixer whose weights it makes.
MIXERS = {
    "bounded": {"name": "softmax_cap"},
    "softpick": {"name": "softpick"},
    "softpick_original": {"name": "softpick", "variant": "original"},
    "sigmoid": {"name": "sigmoid"},
    "selective": {"name": "selective"},
}


def mixer(kernel: str) -> Mixer:
    """A mixer of the transfer study's paper size, without memory."""
    model = study_config.load("transfer", "paper").runs["transfer/base/baseline/s42"].spec.model.to_dict()
    return on_meta(ModelSpec.from_dict(model | {"mixer": MIXERS[kernel], "layers": 1})).blocks[0].attention.mixer


def counts() -> list[str]:
    """A table by kernel and length."""
    rows = [
        "| kernel | T | kept, MB | with the output | moved, MB | forward, GFLOP | backward | to flash: kept | FLOP |"
        " explicit: one chunk, MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kernel, cost in COSTS.items():
        kernel_mixer = mixer(kernel) if kernel in MIXERS else None
        out = kernel_mixer.output_heads if kernel_mixer is not None else HEADS
        for length in LENGTHS:
            shape = AttentionShape(batch=1, heads=HEADS, groups=GROUPS, out=out, length=length, width=WIDTH)
            like = AttentionShape(batch=1, heads=HEADS, groups=GROUPS, out=HEADS, length=length, width=WIDTH)
            mine, flash = sum(operations(cost, shape)), sum(operations(COSTS["flash"], like))
            forward, backward = operations(cost, shape)
            all_bytes, flash_bytes = (
                count_kept_bytes(cost, shape, output=True),
                count_kept_bytes(COSTS["flash"], like, output=True),
            )
            chunk = ""
            if kernel_mixer is not None:
                start, stop = kernel_mixer.spans(length)[-1]
                chunk = f"{(stop - start) * stop * out * 4 / 1e6:,.0f}"
            rows.append(
                f"| {kernel} | {length:,} | {count_kept_bytes(cost, shape) / 1e6:,.1f} | {all_bytes / 1e6:,.1f} "
                f"| {sum(count_moved_bytes(cost, shape)) / 1e6:,.1f} | {forward / 1e9:,.1f} | {backward / 1e9:,.1f} "
                f"| {all_bytes / flash_bytes:.2f} | {mine / flash:.2f} | {chunk} |"
            )
    return rows


def compilations() -> list[str]:
    """A table of what the compiler says, by GPU, width and pass: shared memory, registers, spilled bytes."""
    rows = ["| GPU | type | width | kernel | forward | queries | keys |", "|---|---|---:|---|---|---|---|"]
    for capability, dtype, width in ((90, torch.bfloat16, 64), (90, torch.bfloat16, 128), (80, torch.bfloat16, 64)):
        cells: dict[str, list[str]] = {}
        for row in compile_kernels(width, dtype, capability):
            options = ", ".join(f"{name}={value}" for name, value in row["options"].items())
            cell = f"{row['shared'] / 1024:.0f} KB, {row['registers']}, {row['spilled']}"
            cells.setdefault(f"{row['kernel']} {options}".strip(), []).append(cell)
        rows += [
            f"| sm_{capability} | {str(dtype).removeprefix('torch.')} | {width} | {name} | {' | '.join(three)} |"
            for name, three in cells.items()
        ]
    return rows


def milliseconds(call: Callable[[], torch.Tensor]) -> float:
    """Median time of a forward and a backward pass on the device."""
    milliseconds_of_calls = []
    for number in range(25):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        out = call()
        out.backward(torch.ones_like(out))
        end.record()
        torch.cuda.synchronize()
        if number >= 5:
            milliseconds_of_calls.append(begin.elapsed_time(end))
    return statistics.median(milliseconds_of_calls)


def times() -> list[str]:
    """Milliseconds by kernel and length, and their ratio to flash attention's."""
    lengths = " | ".join(f"T = {length:,}" for length in LENGTHS)
    rows = [f"| kernel | {lengths} |", "|---|" + "---:|" * len(LENGTHS)]
    flash: list[float] = []
    for kernel in COSTS:
        cells = []
        for place, length in enumerate(LENGTHS):
            shapes = ((1, length, heads, WIDTH) for heads in (HEADS, GROUPS, GROUPS))
            q, k, v = (
                torch.randn(shape, device="cuda", dtype=torch.bfloat16).transpose(1, 2).requires_grad_()
                for shape in shapes
            )
            visible = AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device="cuda"), None, None)
            if kernel == "flash":
                duration = milliseconds(
                    lambda q=q, k=k, v=v: scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                )
                flash.append(duration)
            else:
                kernel_mixer = mixer(kernel).to_empty(device="cuda")
                for value in kernel_mixer.parameters():
                    value.data.zero_()
                duration = milliseconds(lambda q=q, k=k, v=v, m=kernel_mixer, s=visible: m(q, k, v, s))
            cells.append(f"{duration:.2f} ({duration / flash[place]:.2f})")
        rows.append(f"| {kernel} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure-times", action="store_true", help="measure times, on a GPU")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    text = [
        "# Attention kernels in counts",
        "",
        f"{describe()}. One layer, {HEADS} heads of width {WIDTH}, {GROUPS} key/value heads, bfloat16, one sequence; "
        "visible pairs only. `python -m benchmarks.attention_kernels`",
        "",
        "Kept: what stays for the backward pass; the next column counts the output as well, which the projection after "
        "it keeps. Moved: every tensor once a kernel, forward and backward. Flash is the second form of flash "
        "attention, whose backward pass walks once and adds the queries' gradient up in no fixed order; ours walk "
        "twice, in a fixed one. Where heads only mask (`selective`), 24 of 32 come out. The last column is the float32 "
        "weights of the largest chunk that explicit weights make, of several such tensors.",
        "",
        *counts(),
        "",
        "What Triton's compiler says of each pass, a program's shared memory, a thread's registers, and the bytes of a "
        "thread that did not fit into them:",
        "",
        *compilations(),
        "",
        "Times on a GPU, forward and backward in milliseconds, and as a multiple of flash attention's:",
        "",
        *(
            times()
            if options.measure_times
            else ["not measured: `python -m benchmarks.attention_kernels --measure-times` on a GPU"]
        ),
        "",
    ]
    options.out.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
