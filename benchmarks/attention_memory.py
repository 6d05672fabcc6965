"""What attention keeps and makes as the sequence grows: every mixer of the transfer study, in every variant.

    python -m benchmarks.attention_memory

One mixer alone, four heads of width 8 over two groups of keys (or as many as the mixer asks for), float32, on a
processor. Counted and not timed, so that every run gives the same table: bytes of all that autograd holds between the
forward and the backward pass, each storage once (`autograd_memory.py`), and of the largest tensor that any operation
of the two makes. With memory linear in T both double from column to column; whole weights would be multiplied by four.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.autograd_memory import HeldByAutograd
from benchmarks.machine_description import describe
from plumbline.core.command_line import positive
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.component import build
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec

HEADS, GROUPS, WIDTH = 4, 2, 8


class LargestTensor(TorchDispatchMode):
    """Bytes of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return result


def measure_peaks(spec: ModelSpec, tokens: int) -> tuple[int, int]:
    """Bytes of the largest tensor, forward and backward, and of all that is kept between the two, of a spec's mixer."""
    torch.manual_seed(0)
    built = build("mixer", spec, 0)
    for value in built.parameters():
        torch.nn.init.normal_(value, std=0.1)
    q, k, v = (
        torch.randn(1, heads, tokens, WIDTH, requires_grad=True) for heads in (HEADS, built.groups, built.groups)
    )
    held_memory = HeldByAutograd()
    attention_mask = AttentionMask.for_call(torch.zeros(1, tokens, dtype=torch.long), None, None)
    with LargestTensor() as largest:
        with held_memory.count():
            out = built(q, k, v, attention_mask)
        out.sum().backward()
    return largest.bytes, held_memory.most


def small(spec: ModelSpec, tokens: int) -> ModelSpec:
    """The same mixer at this size."""
    return spec.resize(heads=HEADS, key_value_heads=GROUPS, head_width=WIDTH, width=HEADS * WIDTH, context=tokens)


def list_mixers() -> dict[str, ModelSpec]:
    """Every mixer of the transfer study's methods and variants, each once, by the method that has it first."""
    specs: dict[str, ModelSpec] = {}
    for run in study_config.load("transfer", "demo").runs.values():
        spec = run.spec.model
        if run.spec.scale == "base" and all(spec.slots["mixer"] != other.slots["mixer"] for other in specs.values()):
            specs[run.spec.method] = spec
    return specs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sequence-lengths", type=positive, nargs="+", default=[512, 1024, 2048, 4096], help="T, ascending"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    columns = [f"{quantity}, T = {tokens:,}" for quantity in ("kept", "largest") for tokens in options.sequence_lengths]
    lines = [
        "# Memory of attention, by mixer",
        "",
        f"{describe()}. A mixer alone, {HEADS} heads of width {WIDTH} over {GROUPS} groups, one sequence, float32: MB "
        "kept for the gradient, and MB of the largest tensor made, forward and backward; `growth` is the larger of the "
        "two's last column over the one before it. Counted: every run gives this table. "
        "`python -m benchmarks.attention_memory`",
        "",
        f"| mixer of | {' | '.join(columns)} | growth |",
        f"|---|{'---:|' * (len(columns) + 1)}",
    ]
    for method, spec in list_mixers().items():
        largest, kept_bytes = zip(*(measure_peaks(small(spec, tokens), tokens) for tokens in options.sequence_lengths))
        growth = (
            max(values[-1] / values[-2] for values in (largest, kept_bytes))
            if len(options.sequence_lengths) > 1
            else float("nan")
        )
        cells = " | ".join(f"{value / 1e6:.2f}" for value in (*kept_bytes, *largest))
        lines.append(f"| {method} | {cells} | {growth:.2f} |")
        print(lines[-1], flush=True)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(options.out)


if __name__ == "__main__":
    main()
