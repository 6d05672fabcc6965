"""The baseline's whole training step at paper size, of several accumulated micro-batches: eager and compiled.

Forward and backward passes, clipping and update, as the trainer takes them, without the data. Weights are drawn on the
device: 1.2 billion numbers of a processor, as a run begins with, would take each row longer than its steps.

MFU: operations of linear maps, logits and attention, three times the forward pass's, over the time and the stated peak
of config/machines.yaml; of attention all pairs of query and key count, as in a plan and in the reckoned compiled step,
and in another column the visible ones alone.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.device_under_test import find_stated_peak, milliseconds, peak_gib
from benchmarks.gpu_check.sections import Rows, SectionCall
from plumbline.core.errors import PlumblineError
from plumbline.model import kernel_choice
from plumbline.model.decoder import Decoder
from plumbline.model.distributed import RankGroup
from plumbline.model.flops import count_operations
from plumbline.model.init import initial_value
from plumbline.model.numerics import autocast, numerics
from plumbline.model.roles import NormalInit, collect_roles
from plumbline.specs.spec import ModelSpec, RunSpec
from plumbline.train.compiling import CompiledModel
from plumbline.train.run_optimizer import RunOptimizer

#: In this order: the whole model as one graph takes the compiler longest, and is what nothing else needs.
EAGER, BY_LAYERS, WHOLE = "eager", "compiled by shared layers", "compiled whole"


def rows(call: SectionCall) -> Rows:
    """A row for each way; the eager one alone in a rehearsal."""
    spec = base_scale_specs.runs(call.preset)[base_scale_specs.BASELINE]
    ways = (EAGER,) if call.rehearsal else (EAGER, BY_LAYERS, WHOLE)
    return {way: functools.partial(take_steps, spec, way, call, call.micro_batch) for way in ways}


def take_steps(
    spec: RunSpec, way: str, call: SectionCall, accumulated: int = 1, layers: int | None = None
) -> dict[str, Any]:
    """Time steps of so many micro-batches; `layers` of the model in place of its own."""
    device, sequences = torch.device(call.device), call.micro_batch
    numerics(device)
    model_spec = spec.model if layers is None else spec.model.resize(layers=layers)
    model = draw_on_device(model_spec, device)
    dtype = torch.bfloat16 if spec.train.precision == "bfloat16" else torch.float32
    kernel = kernel_choice.choose(model, "auto", call.device, dtype)["kernel"]
    began = time.perf_counter()
    forward = _compile(model, spec, way, sequences, device)
    compiled = round(time.perf_counter() - began, 1)
    optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, precision=spec.train.precision)
    shape = (accumulated, sequences, model_spec.context)
    tokens_MBT = torch.randint(model_spec.vocabulary, shape, device=device)
    predicted = accumulated * sequences * (model_spec.context - 1)
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

    duration = milliseconds(step, call.rehearsal)
    if not math.isfinite(losses[-1].item()):
        raise ArithmeticError(f"the loss is {losses[-1].item()}, and such a step's time says nothing")
    peak = {} if call.rehearsal else find_stated_peak(torch.cuda.get_device_name())
    row = {"ms": duration, "tokens/s": 1e3 * tokens_MBT.numel() / duration, "micro-batches": accumulated}
    for pairs, visible_only in (("all pairs", False), ("visible pairs", True)):
        operations = count_operations(model_spec, sequences=accumulated * sequences, causal=visible_only)
        row[f"MFU, {pairs}"] = operations / duration / 1e9 / peak["peak_tflops"] if peak else None
    row |= {"attention": kernel, "GiB": peak_gib(call.rehearsal)}
    return row | {"seconds to compile": None if way == EAGER else compiled}


def _compile(model: Decoder, spec: RunSpec, way: str, sequences: int, device: torch.device) -> Callable[..., Any]:
    """The model, compiled in this way by one pass of which nothing stays.

    Raises:
        PlumblineError: the compiler failed, where the trainer would go on without it.
    """
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
