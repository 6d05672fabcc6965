"""A training step at paper size: the baseline's as the trainer takes it, and every method's next to it.

The first rows are whole steps of the trainer (`train.step_time`): data, accumulation, clipping, update. Methods take
theirs without the data and with one micro-batch, one method at a time, the baseline first and last, so that what the
device's clock does in between can be seen. Their weights are drawn on the device: 1.2 billion numbers of a processor,
as a run begins with, would take each method longer than its steps.

MFU: operations of linear maps, logits and attention, three times the forward pass's, over the time and the stated peak
of config/machines.yaml; only visible pairs of query and key count, and (all pairs) every pair, as others count.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

if TYPE_CHECKING:
    from plumbline.model.decoder import Decoder
    from plumbline.specs.spec import ModelSpec, RunSpec

TITLE = "Training steps of the transfer study's base scale"
SHARE = 0.5

OPERATIONS = ("operations", "operations_all_pairs")


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """The trainer's baseline eager; each method; the trainer's baseline in larger micro-batches, and compiled."""
    specs, micro = base_scale_specs.runs(setting.size.preset), setting.size.sequences
    baseline = specs[BASELINE]
    methods = [name for name in base_scale_specs.methods() if name in specs and name != BASELINE]
    planned: dict[str, Callable[[], dict[str, Any]]] = {
        f"trainer, micro-batch {micro}": functools.partial(_trainer, baseline, micro, False, setting),
        f"{BASELINE}, first": functools.partial(method, baseline, setting),
    }
    planned |= {name: functools.partial(method, specs[name], setting) for name in methods}
    planned |= {
        f"{BASELINE}, last": functools.partial(method, baseline, setting),
        f"trainer, micro-batch {2 * micro}": functools.partial(_trainer, baseline, 2 * micro, False, setting),
    }
    if setting.size.compiles:
        compiled = functools.partial(_trainer, baseline, micro, True, setting)
        planned[f"trainer, micro-batch {micro}, compiled"] = compiled
    return planned


def trainer(
    spec: RunSpec, micro_batch: int, compiled: bool, setting: SectionCall, accumulated: int, repeats: int, warmup: int
) -> dict[str, Any]:
    """Whole steps of the trainer, of so many accumulated micro-batches of the sizes' sequences."""
    from benchmarks.gpu_check.device_under_test import forget_peak, peak_gib
    from plumbline.train.step_time import TimingSettings, measure

    sequences = setting.size.sequences * accumulated
    forget_peak(setting.device)
    how = TimingSettings(
        sequences=sequences,
        micro_batch=min(micro_batch, sequences),
        repeats=repeats,
        warmup=warmup,
        device=setting.device,
        compile=compiled,
    )
    steps = measure([spec], how, lambda text: None)
    return _row(spec.model, sequences, float(steps["seconds"].median()), peak_gib(setting.device))


def _trainer(spec: RunSpec, micro_batch: int, compiled: bool, setting: SectionCall) -> dict[str, Any]:
    size = setting.size
    return trainer(spec, micro_batch, compiled, setting, size.accumulated, size.repeats, size.warmup)


def method(spec: RunSpec, setting: SectionCall, compiled: bool = False) -> dict[str, Any]:
    """Steps of one micro-batch: forward, backward, clip, update."""
    import torch

    from benchmarks.gpu_check.device_under_test import forget_peak, milliseconds, peak_gib
    from plumbline.model.numerics import autocast, numerics
    from plumbline.train.run_optimizer import RunOptimizer

    size, device = setting.size, torch.device(setting.device)
    numerics(device)
    forget_peak(setting.device)
    model = draw_on_device(spec.model, device)
    began = time.perf_counter()
    forward = _compile(model, spec, size.sequences, device) if compiled else model
    taken_by_compiler = {"compiled_in_seconds": round(time.perf_counter() - began, 1)} if compiled else {}
    optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, precision=spec.train.precision)
    tokens_BT = torch.randint(spec.model.vocabulary, (size.sequences, spec.model.context), device=device)
    losses: list[torch.Tensor] = []

    def step() -> None:
        with autocast(spec.train.precision, device):
            loss = forward(tokens_BT, loss=True) / (size.sequences * (spec.model.context - 1))
        loss.backward()
        optimizer.clip()
        optimizer.step(1, 1e-4)
        optimizer.zero_grad()
        losses.append(loss.detach())

    duration = milliseconds(step, setting.device, repeats=size.repeats, warmup=size.warmup)
    if not math.isfinite(losses[-1].item()):
        raise ArithmeticError(f"the loss is {losses[-1].item()}, and such a step's time says nothing")
    return _row(spec.model, size.sequences, duration / 1e3, peak_gib(setting.device)) | taken_by_compiler


def _compile(model: Decoder, spec: RunSpec, sequences: int, device: Any) -> Callable[..., Any]:
    """The model as the trainer compiles it.

    Raises:
        PlumblineError: the compiler failed, where the trainer would go on without it.
    """
    import torch

    from plumbline.core.errors import PlumblineError
    from plumbline.model.distributed import RankGroup
    from plumbline.train.compiling import CompiledModel

    torch._dynamo.reset()  # what the last method left
    compiled_model = CompiledModel(model, model, RankGroup(rank=0, world=1, device=device), None)
    if (fault := compiled_model.attempt(sequences, spec.train.precision)) is not None:
        raise PlumblineError(f"{spec.key} is not compiled: {fault}")
    return compiled_model


def draw_on_device(spec: ModelSpec, device: Any) -> Decoder:
    """A decoder whose random weights are drawn on the device: other numbers than `create`'s, of the same spread."""
    import torch

    from plumbline.model.decoder import Decoder
    from plumbline.model.init import initial_value
    from plumbline.model.roles import NormalInit, collect_roles

    with torch.device(device):
        model = Decoder(spec)
    starts = collect_roles(model)
    with torch.no_grad():
        for name, value in model.named_parameters():
            init = starts[name].init
            if isinstance(init, NormalInit):
                value.normal_(0.0, spec.init_std if init.std is None else init.std)
            else:
                value.copy_(initial_value(init, value.shape, 0, name, spec))
    return model


def _row(spec: ModelSpec, sequences: int, seconds: float, peak: float | None) -> dict[str, Any]:
    from plumbline.model.flops import count_operations

    return {
        "seconds": seconds,
        "tokens": sequences * spec.context,
        "peak_gib": peak,
        "operations": count_operations(spec, sequences=sequences, causal=True),
        "operations_all_pairs": count_operations(spec, sequences=sequences),
    }


def page(state: MeasuredRows, section: str = "eager_steps") -> list[str]:
    """Steps, their share of the peak, and over the baseline's."""
    measured = state.rows(section)
    peak = state.content["machine"].get("peak_tflops")
    firsts = [measured[key]["seconds"] for key in (f"{BASELINE}, first", f"{BASELINE}, last") if key in measured]
    lines = []
    for key, row in measured.items():
        beside = firsts and not key.startswith("trainer")
        shares = [row[name] / row["seconds"] / peak / 1e12 if peak else None for name in OPERATIONS]
        speed = sum(firsts) / len(firsts) / row["seconds"] if beside else None
        rate = row["tokens"] / row["seconds"]
        cells = (key, row["tokens"], row["seconds"], rate, speed, *shares, row["peak_gib"])
        lines.append((*cells, row.get("compiled_in_seconds")))
    columns = ["step", "tokens", "seconds", "tokens/s", "of the baseline's speed", "MFU", "(all pairs)", "GiB"]
    columns.append("seconds to compile")
    if all(line[-1] is None for line in lines):
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    return table(columns, lines)
