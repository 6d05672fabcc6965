"""The baseline's whole training step at paper size, of several accumulated micro-batches: eager and compiled.

Forward and backward passes, clipping and update, as the trainer takes them, without the data. Weights are drawn on the
device: 1.2 billion numbers of a processor, as a run begins with, would take each row longer than its steps.

MFU: operations of linear maps, logits and attention, three times the forward pass's, over the time and the stated peak
of config/machines.yaml; of attention all pairs of query and key count, as in a plan and in the reckoned compiled step,
and beside it the visible ones alone.
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
    import torch

    from plumbline.model.decoder import Decoder
    from plumbline.specs.spec import ModelSpec, RunSpec

TITLE = "The baseline's whole step, eager and compiled"

#: In this order: the whole model as one graph takes the compiler longest, and is what nothing else needs.
EAGER, BY_LAYERS, WHOLE = "eager", "compiled by shared layers", "compiled whole"
#: Columns of the page -> what is counted of a step.
OPERATIONS = {"MFU, all pairs": "operations_all_pairs", "MFU, visible pairs": "operations"}


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each way; the eager one alone where nothing is compiled."""
    spec = base_scale_specs.runs(setting.size.preset)[BASELINE]
    ways = (EAGER, BY_LAYERS, WHOLE) if setting.size.compiles else (EAGER,)
    return {way: functools.partial(take_steps, spec, way, setting, setting.size.accumulated) for way in ways}


def take_steps(
    spec: RunSpec, way: str, setting: SectionCall, accumulated: int = 1, layers: int | None = None
) -> dict[str, Any]:
    """Time steps of so many micro-batches; `layers` of the model in place of its own."""
    import torch

    from benchmarks.gpu_check.device_under_test import forget_peak, milliseconds, peak_gib
    from plumbline.model import kernel_choice
    from plumbline.model.flops import count_operations
    from plumbline.model.numerics import autocast, numerics
    from plumbline.train.run_optimizer import RunOptimizer

    size, device = setting.size, torch.device(setting.device)
    numerics(device)
    forget_peak(setting.device)
    model_spec = spec.model if layers is None else spec.model.resize(layers=layers)
    model = draw_on_device(model_spec, device)
    dtype = torch.bfloat16 if spec.train.precision == "bfloat16" else torch.float32
    kernel = kernel_choice.choose(model, "auto", setting.device, dtype)["kernel"]
    began = time.perf_counter()
    forward = _compile(model, spec, way, size.sequences, device)
    compiling = {} if way == EAGER else {"compiled_in_seconds": round(time.perf_counter() - began, 1)}
    optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, precision=spec.train.precision)
    shape = (accumulated, size.sequences, model_spec.context)
    tokens_MBT = torch.randint(model_spec.vocabulary, shape, device=device)
    predicted = accumulated * size.sequences * (model_spec.context - 1)
    losses: list[torch.Tensor] = []

    def step() -> None:
        for tokens_BT in tokens_MBT:
            with autocast(spec.train.precision, device):
                loss = forward(tokens_BT, loss=True) / predicted
            loss.backward()
        optimizer.clip()
        optimizer.step(1, 1e-4)
        optimizer.zero_grad()
        losses.append(loss.detach())

    duration = milliseconds(step, setting.device, repeats=size.repeats, warmup=size.warmup)
    if not math.isfinite(losses[-1].item()):
        raise ArithmeticError(f"the loss is {losses[-1].item()}, and such a step's time says nothing")
    sequences = accumulated * size.sequences
    return {
        "seconds": duration / 1e3,
        "tokens": sequences * model_spec.context,
        "micro_batches": accumulated,
        "attention": kernel,
        "peak_gib": peak_gib(setting.device),
        "operations": count_operations(model_spec, sequences=sequences, causal=True),
        "operations_all_pairs": count_operations(model_spec, sequences=sequences),
        **compiling,
    }


def _compile(model: Decoder, spec: RunSpec, way: str, sequences: int, device: torch.device) -> Callable[..., Any]:
    """The model, compiled in this way by one pass of which nothing stays.

    Raises:
        PlumblineError: the compiler failed, where the trainer would go on without it.
    """
    import torch

    from plumbline.core.errors import PlumblineError
    from plumbline.model.distributed import RankGroup
    from plumbline.model.numerics import autocast
    from plumbline.train.compiling import CompiledModel

    if way == EAGER:
        return model
    torch._dynamo.reset()  # what the last row left
    if way == BY_LAYERS:
        by_layers = CompiledModel(model, model, RankGroup(rank=0, world=1, device=device), None)
        if (fault := by_layers.attempt(sequences, spec.train.precision)) is not None:
            raise PlumblineError(f"{spec.key} is not compiled: {fault}")
        return by_layers
    whole = torch.compile(model, dynamic=False, fullgraph=True)
    tokens_BT = torch.zeros(sequences, model.spec.context, dtype=torch.long, device=device)
    with autocast(spec.train.precision, device):
        loss = whole(tokens_BT, loss=True)
    loss.backward()
    model.zero_grad(set_to_none=True)
    return whole


def draw_on_device(spec: ModelSpec, device: torch.device) -> Decoder:
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


def page(state: MeasuredRows, section: str = "baseline_steps") -> list[str]:
    """Steps, their share of the peak, and over the baseline's where that is a row among them."""
    measured = state.rows(section)
    peak = state.content["machine"].get("peak_tflops")
    firsts = [measured[key]["seconds"] for key in (f"{BASELINE}, first", f"{BASELINE}, last") if key in measured]
    lines = []
    for key, row in measured.items():
        speed = sum(firsts) / len(firsts) / row["seconds"] if firsts else None
        shares = [row[name] / row["seconds"] / peak / 1e12 if peak else None for name in OPERATIONS.values()]
        cells = (
            key,
            row["attention"],
            row["micro_batches"],
            1e3 * row["seconds"],
            row["tokens"] / row["seconds"],
            speed,
            *shares,
        )
        lines.append((*cells, row["peak_gib"], row.get("compiled_in_seconds")))
    columns = ("step", "attention", "micro-batches", "ms", "tokens/s", "of the baseline's speed", *OPERATIONS, "GiB")
    return table((*columns, "seconds to compile"), lines)
