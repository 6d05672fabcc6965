"""Takes one micro-batch's step of a run's model on a CUDA device that is not there (`absent_cuda` comes first)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import torch
import triton
from msgspec import structs
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily

from benchmarks.fake_device.step_counts import StepCounts, find_caller
from plumbline.data.loader import Pack
from plumbline.model.decoder import Decoder
from plumbline.model.distributed import RankGroup
from plumbline.model.numerics import autocast, set_numerics
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import Intervention, InterventionInputs, build
from plumbline.train.monitoring.progress import TrainingProgress
from plumbline.train.run_optimizer import RunOptimizer

DEVICE = torch.device("cuda", 0)
#: The step that is counted: the first one has more to do.
STEP = 2
#: Where the code of interventions is: in a step in which one has to know the loss at once, it may wait for the device.
INTERVENTIONS = "src/plumbline/train/interventions"


class FakeStep:
    """A step that was taken: its counts, and what its parameters got.

    It is the run's second one, so that what interventions do before the first is done, and none of the studies' reads
    held-out sequences: in which steps they do, and how many, is theirs to choose.

    Attributes:
        counts: of waits, products and memory.
        parameters: bytes that the parameters take; `held`: and the optimizer's state with them.
        without_gradient: names of parameters that got none, or one of another type.
        unfinished: what ended the step before its end; None if nothing did.
    """

    def __init__(self, spec: RunSpec, sequences: int, *, layers: int | None = None) -> None:
        """Take the step: forward, backward, clipping, update, and what interventions add to these.

        Args:
            layers: of the model, in place of the spec's.
        """
        model_spec = spec.model if layers is None else spec.model.resize(layers=layers)
        spec = structs.replace(spec, model=model_spec)
        self.without_gradient: list[str] = []
        self.unfinished: str | None = None
        set_numerics(DEVICE)
        with FakeTensorMode(allow_non_fake_inputs=True):
            with DEVICE:
                model = Decoder(model_spec)
                tokens_BT = torch.zeros(sequences, model_spec.context, dtype=torch.long)
                skip = torch.zeros(())
            hooks = _attach_hooks(spec, model)
            at_once = any(hook.needs_loss(STEP) for hook in hooks)
            self.counts = StepCounts(declared=INTERVENTIONS if at_once else None)
            for value in model.parameters():
                self.counts.hold(value)
            self.parameters = self.held = self.counts.held
            optimizer = RunOptimizer(
                model, model.parameter_roles, spec.optimizer, hooks, precision=spec.train.precision
            )
            with stand_ins():
                try:
                    self._take_first(optimizer, skip)
                    with self.counts:
                        self._take(spec, model, optimizer, tokens_BT, None if at_once else skip)
                except Exception as fault:  # of a component's code, with what it reads of tensors without numbers
                    first = next(iter(str(fault).splitlines()), "")
                    self.unfinished = f"{type(fault).__name__}: {first} at {find_caller(fault.__traceback__)}"

    def _take(
        self, spec: RunSpec, model: Decoder, optimizer: RunOptimizer, tokens_BT: torch.Tensor, skip: torch.Tensor | None
    ) -> None:
        """Do what `plumbline.train.loop` does in a step of one micro-batch."""
        for hook in optimizer.interventions:
            hook.begin(STEP)
        with autocast(spec.train.precision, DEVICE):
            objective = model(tokens_BT, loss=True) / (len(tokens_BT) * (spec.model.context - 1))
        for hook in optimizer.interventions:
            extra = hook.extra_loss(STEP, tokens_BT)
            if extra is not None:
                objective = objective + extra
        self.counts.phase = "backward"
        objective.backward()
        self.without_gradient = [
            f"{name}: {None if value.grad is None else value.grad.dtype}"
            for name, value in model.named_parameters()
            if value.grad is None or value.grad.dtype != value.dtype
        ]
        self.counts.phase = "update"
        optimizer.clip()
        optimizer.step(STEP, 1e-3, skip)
        optimizer.zero_grad()
        for hook in optimizer.interventions:
            hook.end(STEP)

    def _take_first(self, optimizer: RunOptimizer, skip: torch.Tensor) -> None:
        """Have optimizer and interventions make their states, by a first update that is not counted."""
        with StepCounts():
            for hook in optimizer.interventions:
                if hook.held_out == "none":
                    hook.begin(STEP - 1)
            for value in optimizer.parameters.values():
                value.grad = torch.zeros_like(value)
            optimizer.step(STEP - 1, 1e-3, skip)
            optimizer.zero_grad()
        for value in optimizer.tensors().values():
            self.counts.hold(value)
        self.held = self.counts.held


def _attach_hooks(spec: RunSpec, model: torch.nn.Module) -> list[Intervention]:
    """Build the interventions of a spec and attach them to a model of fake tensors, as the trainer does; what they try
    on a processor, with numbers, they try with real ones."""
    context = spec.model.context
    blank = SimpleNamespace(
        path=Path("no pack"), separator=0, context=context, rows=lambda indices: np.zeros((len(indices), context), int)
    )
    progress = SimpleNamespace(say=lambda text: None, event=lambda *arguments, **keywords: None)
    inputs = InterventionInputs(
        spec=spec,
        model=model,
        ranks=RankGroup(rank=0, world=1, device=DEVICE),
        validation=cast(Pack, blank),
        progress=cast(TrainingProgress, progress),
    )
    hooks = build(spec.interventions)
    with unset_fake_temporarily():
        for hook in hooks:
            hook.attach(inputs)
    return hooks


@contextmanager
def stand_ins(*, launch: bool = False) -> Iterator[None]:
    """Have fused attention be flash attention's operators, as torch chooses on such a device, and our kernels do
    nothing (unless a compiler only sees their `launch`)."""
    plain = torch.nn.functional.scaled_dot_product_attention
    callers = [module for module in sys.modules.values() if getattr(module, plain.__name__, None) is plain]
    with ExitStack() as stack:
        for module in callers:
            stack.enter_context(patch.object(module, plain.__name__, _flash))
        if not launch:
            stack.enter_context(patch.object(triton.runtime.jit.JITFunction, "run", _require_tensors_there))
            stack.enter_context(patch.object(FakeTensor, "tolist", _wait_once))
        yield


def _wait_once(value: torch.Tensor) -> Any:
    """The numbers of a tensor, which the host waits for once and not one after another."""
    return np.full(tuple(value.shape), value.flatten()[0].item()).tolist()


def _flash(
    q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, v_BGTW: torch.Tensor, *, attn_mask: Any, is_causal: bool,
    scale: float, enable_gqa: bool,
) -> torch.Tensor:  # fmt: skip
    assert attn_mask is None and is_causal, "a step of training is causal, and nothing else is hidden"
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        q_BHTW, k_BGTW, v_BGTW = (value.to(dtype) for value in (q_BHTW, k_BGTW, v_BGTW))
    assert q_BHTW.dtype == k_BGTW.dtype == v_BGTW.dtype == torch.bfloat16, "flash attention takes halves alone"
    assert q_BHTW.shape[-1] == v_BGTW.shape[-1], "and one head width"
    return torch.ops.aten._scaled_dot_product_flash_attention(q_BHTW, k_BGTW, v_BGTW, 0.0, True, scale=scale)[0]


def _require_tensors_there(kernel: Any, *arguments: Any, **keywords: Any) -> None:
    tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
    assert all(value.is_cuda for value in tensors), (
        f"{kernel.fn.__module__}.{kernel.fn.__name__} gets the host's tensors"
    )
