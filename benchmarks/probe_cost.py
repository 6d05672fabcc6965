"""What activation probes cost, as a share of a validation pass over the same sequences.

    python benchmarks/probe_cost.py                      # two CPU minutes, one thread, writes benchmarks/probe_cost.md

A validation pass and passes with probes are taken in turn in one process, a validation pass around each, on the same
sequences and model: what else the machine does slows all alike, and CPU time is taken rather than wall time. The model
has heads of 64 and a context of 1024, as the premature study's; it is narrower, so that attention and with it probes
weigh more than there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from machine_description import describe
from torch.nn.functional import cross_entropy

from plumbline.evaluate.probes import build, read
from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ModelSpec, ProbeSpec

#: Families that share one pass. (Ablation makes three passes of its own, locality one of another model, and the
#: bilinear form none.)
FAMILIES = ("attention_statistics", "lower_copy", "ffn_write", "query_key_norms")
SIZES = {
    "layers": 6, "width": 384, "heads": 6, "key_value_heads": 6, "head_width": 64, "ffn_width": 1024,
    "vocabulary": 8192, "context": 1025, "norm_eps": 1e-5, "init_std": 0.02, "residual_init_scaling": True,
    "tied_embeddings": True,
}  # fmt: skip
SLOTS = {
    "positions": "rotary", "norm": "rms_norm", "projections": "grouped_query", "query_key": "identity", "values":
    "identity", "mixer": "softmax", "output": "identity", "ffn": "swiglu", "placement": "pre_norm", "residual":
    "standard",
}  # fmt: skip


@torch.no_grad()
def validate(model: Decoder, tokens_BT: torch.Tensor) -> None:
    """The held-out loss, one sequence at a time as probes read them."""
    model.eval()
    for tokens_T in tokens_BT:
        cross_entropy(model(tokens_T[None, :-1]).flatten(0, 1), tokens_T[1:])


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sequences", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = create(ModelSpec.from_dict(SIZES | {slot: {"name": name} for slot, name in SLOTS.items()}), init_seed=42)
    tokens_BT = torch.randint(SIZES["vocabulary"], (options.sequences, SIZES["context"]))
    chosen: dict[str, tuple[str, ...]] = {"none": (), "all four in one pass": FAMILIES}
    chosen |= {f"`{name}` alone": (name,) for name in FAMILIES}
    passes = {
        label: lambda names=names: read(model, build([ProbeSpec(name=name) for name in names]), tokens_BT)
        for label, names in chosen.items()
    }
    for work in (lambda: validate(model, tokens_BT), *passes.values()):
        work()  # the first pass allocates
    ratios: dict[str, list[float]] = {label: [] for label in passes}
    plain = [seconds(lambda: validate(model, tokens_BT))]
    for _ in range(options.repetitions):
        for label, work in passes.items():
            pass_seconds = seconds(work)
            plain.append(seconds(lambda: validate(model, tokens_BT)))
            ratios[label].append(pass_seconds / statistics.mean(plain[-2:]))
    lines = [
        "# What activation probes cost",
        "",
        f"{describe()}. Median of {options.repetitions} rounds of the ratio to a validation pass over the same "
        f"{options.sequences} sequences just before and after; CPU time. {SIZES['layers']} layers, width "
        f"{SIZES['width']}, {SIZES['heads']} heads of {SIZES['head_width']}, {SIZES['context'] - 1} tokens, FFN "
        f"{SIZES['ffn_width']}, vocabulary {SIZES['vocabulary']:,}, float32; a validation pass takes "
        f"{statistics.median(plain) / options.sequences:.2f} s a sequence. `python benchmarks/probe_cost.py`",
        "",
        "A pass of probes takes no cross entropy, so that without any probe it is a little less than a validation "
        "pass; what probes add is the difference to that.",
        "",
        "| probes | ratio to a validation pass | least | most | added |",
        "|---|---:|---:|---:|---:|",
    ]
    middle = {label: statistics.median(values) for label, values in ratios.items()}
    for label, values in ratios.items():
        added = middle[label] - middle["none"]
        lines.append(f"| {label} | {middle[label]:.2f} | {min(values):.2f} | {max(values):.2f} | {added:.0%} |")
    share = middle["all four in one pass"]
    lines += [
        "",
        f"So 8 probe sequences beside a validation of 256 cost {8 * share / 256:.1%} of it, their own forward pass "
        "included.",
    ]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
