"""Tokens a second beside Transformers' Llama and nanoGPT's model of equal shape, eager and compiled.

The sides are those of benchmarks/step_beside_peers.py, here on the device, in turn, at the baseline's shape: a
step is forward with the model's own loss under bfloat16 autocast, backward, gradient norm clipped at 1, fused AdamW.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

TITLE = "Tokens a second beside others of equal shape"
SHARE = 0.4

OURS = "plumbline"


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """Each side eager, then each compiled."""
    sys.path.insert(0, str(Path(__file__).parents[2]))  # where that script finds its neighbours
    import step_beside_peers as sides

    spec = base_scale_specs.runs(setting.size.preset)[base_scale_specs.BASELINE].model
    shape = {
        "layers": spec.layers, "width": spec.width, "heads": spec.heads, "groups": spec.key_value_heads,
        "ffn": spec.ffn_width, "vocabulary": spec.vocabulary, "context": spec.context,
        "sequences": setting.size.sequences,
    }  # fmt: skip
    builders = {OURS: sides.ours, "transformers": sides.llama}
    if setting.nanogpt:
        builders["nanoGPT"] = functools.partial(sides.nanogpt, folder=setting.nanogpt)
    ways = (False, True) if setting.size.compiles else (False,)
    return {
        f"{name}, {'compiled' if compiled else 'eager'}": functools.partial(_side, build, shape, compiled, setting)
        for compiled in ways
        for name, build in builders.items()
    }


def _side(build: Callable[..., Any], shape: dict[str, int], compiled: bool, setting: SectionCall) -> dict[str, Any]:
    import torch

    from benchmarks.gpu_check.device_under_test import forget_peak, milliseconds, peak_gib
    from plumbline.model.numerics import numerics

    forget_peak(setting.device)
    torch.manual_seed(0)
    # In float32 the sides open no autocast of a processor; the device's is opened around them.
    with torch.device(setting.device):
        model, loss_of, parameters = build(shape, compiled, "float32")
    model.to(setting.device)
    numerics(torch.device(setting.device))
    torch.set_deterministic_debug_mode("default")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens_BT = torch.randint(shape["vocabulary"], (shape["sequences"], shape["context"]), device=setting.device)

    def step() -> None:
        with torch.autocast(setting.device, dtype=torch.bfloat16):
            loss = loss_of(tokens_BT)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    size = setting.size
    duration = milliseconds(step, setting.device, repeats=size.repeats, warmup=size.warmup)
    tokens = shape["sequences"] * shape["context"]
    return {
        "parameters": parameters,
        "seconds": duration / 1e3,
        "tokens_per_second": 1e3 * tokens / duration,
        "peak_gib": peak_gib(setting.device),
    }


def page(state: MeasuredRows) -> list[str]:
    """Tokens a second, and how many times as many ours has in the same mode."""
    measured = state.rows("beside_transformers")
    lines = []
    for key, row in measured.items():
        ours = measured.get(f"{OURS}, {key.rpartition(', ')[2]}")
        ratio = ours["tokens_per_second"] / row["tokens_per_second"] if ours else None
        lines.append((key, row["parameters"], row["seconds"], row["tokens_per_second"], ratio, row["peak_gib"]))
    return table(("side", "parameters", "seconds", "tokens/s", "ours over it", "GiB"), lines)
