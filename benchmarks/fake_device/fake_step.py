"""Takes one micro-batch's step of a run's model on a CUDA device that is not there (`absent_cuda` comes first)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import triton
from msgspec import structs
from torch._dynamo.exc import TorchDynamoException
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from benchmarks.fake_device.attached_hooks import FOLDER, attach_hooks
from benchmarks.fake_device.step_counts import StepCounts, caller
from benchmarks.kernel_costs import COSTS
from plumbline.model.decoder import Decoder
from plumbline.model.kernels.selection import TABLE
from plumbline.model.numerics import autocast, set_numerics
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import Intervention
from plumbline.train.run_optimizer import RunOptimizer

DEVICE = torch.device("cuda", 0)
#: The step that is counted: the first one has more to do.
STEP = 2


class _TracedError(Exception):
    """Raised where a graph would run."""


class FakeStep:
    """A step that was taken: its counts, and what its parameters got.

    It is the run's second one, so that what interventions do before the first is done, and none of the studies' reads
    held-out sequences: in which steps they do, and how many, is theirs to choose.

    Attributes:
        counts: of kernels, bytes, operations, waits and memory.
        parameters: bytes that the parameters take; `held`: and the optimizer's state with them.
        without_gradient: names of parameters that got none, or one of another type.
        unfinished: what ended the step before its end, in words; None if nothing did.
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
            hooks = attach_hooks(spec, model, DEVICE)
            at_once = any(hook.needs_loss(STEP) for hook in hooks)
            self.counts = StepCounts(declared=(FOLDER,) if at_once else ())
            for value in model.parameters():
                self.counts.hold(value)
            self.parameters = self.held = self.counts.held
            optimizer = RunOptimizer(
                model, model.parameter_roles, spec.optimizer, hooks, precision=spec.train.precision
            )
            with stand_ins(self.counts):
                try:
                    self._first(optimizer, skip)
                    with self.counts:
                        self._take(spec, model, optimizer, tokens_BT, None if at_once else skip)
                except Exception as fault:  # of a component's code, with what it reads of tensors without numbers
                    first = next(iter(str(fault).splitlines()), "")
                    self.unfinished = f"{type(fault).__name__}: {first} at {caller(fault.__traceback__)}"

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

    def _first(self, optimizer: RunOptimizer, skip: torch.Tensor) -> None:
        """Have optimizer and interventions make their states, by a first update that is not counted."""
        with StepCounts():
            begun(optimizer.interventions)
            for value in optimizer.parameters.values():
                value.grad = torch.zeros_like(value)
            optimizer.step(STEP - 1, 1e-3, skip)
            optimizer.zero_grad()
        for value in optimizer.tensors().values():
            self.counts.hold(value)
        self.held = self.counts.held


def begun(hooks: Sequence[Intervention]) -> None:
    """Begin the first step, except for what is read of held-out sequences, which are none here."""
    for hook in hooks:
        if hook.held_out == "none":
            hook.begin(STEP - 1)


def graphs(spec: RunSpec, sequences: int, *, layers: int | None = None) -> tuple[int, str | None]:
    """Trace the forward pass as torch.compile does, whole or not at all.

    Returns how many graphs there are, and why there is none.
    """
    model_spec = spec.model if layers is None else spec.model.resize(layers=layers)
    traced_graphs: list[Any] = []

    def keep(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        traced_graphs.append(graph)
        return _raise_traced

    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True):
        with DEVICE:
            model = Decoder(model_spec)
            tokens_BT = torch.zeros(sequences, model_spec.context, dtype=torch.long)
        hooks = attach_hooks(structs.replace(spec, model=model_spec), model, DEVICE)
        with stand_ins(None):
            with StepCounts():
                begun(hooks)
            try:
                with autocast(spec.train.precision, DEVICE):
                    torch.compile(model, backend=keep, fullgraph=True, dynamic=False)(tokens_BT, loss=True)
            except _TracedError:
                pass
            except TorchDynamoException as fault:
                return 0, str(fault).strip().splitlines()[0]
    return len(traced_graphs), None


def _raise_traced(*arguments: Any) -> Any:
    raise _TracedError


@contextmanager
def stand_ins(counts: StepCounts | None) -> Iterator[None]:
    """Have fused attention be flash attention's operators, as torch chooses on such a device, and count launches of our
    kernels instead of compiling them."""
    plain, launch = torch.nn.functional.scaled_dot_product_attention, triton.runtime.jit.JITFunction.run
    whole = FakeTensor.tolist
    callers = [module for module in sys.modules.values() if getattr(module, plain.__name__, None) is plain]
    try:
        for module in callers:
            setattr(module, plain.__name__, _flash)
        if counts is not None:
            triton.runtime.jit.JITFunction.run = lambda kernel, *arguments, **keywords: _count_launch(
                counts, kernel, arguments, keywords
            )
            FakeTensor.tolist = _read_whole
        yield
    finally:
        for module in callers:
            setattr(module, plain.__name__, plain)
        triton.runtime.jit.JITFunction.run = launch
        FakeTensor.tolist = whole


def _read_whole(value: FakeTensor) -> Any:
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


def _count_launch(counts: StepCounts, kernel: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Count a launch of a kernel of ours; its tensors have to be on the device."""
    tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
    assert all(value.is_cuda for value in tensors), f"{name_of(kernel)} gets tensors of the host"
    moved = sum(value.numel() * value.element_size() for value in tensors)
    operations = kernel_operations(kernel, tuple(tensors[0].shape), keywords)
    counts.add_launch(name_of(kernel), moved=moved, operations=operations)


def name_of(kernel: Any) -> str:
    """A kernel's module and function, as softpick_forward."""
    return kernel.fn.__module__.rpartition(".")[2] + kernel.fn.__name__


def kernel_operations(kernel: Any, shape_BHTW: tuple[int, ...], constants: dict[str, Any]) -> int:
    """The operations of a kernel of ours by `benchmarks.kernel_costs`, over the tiles that it visits."""
    module, function = kernel.fn.__module__.rpartition(".")[2], kernel.fn.__name__
    assert module in TABLE, f"{function} is a kernel of no mixer"
    batch, heads, length, width = shape_BHTW
    cost, out, rows_held = COSTS[module], constants.get("OUT", heads), constants["HELD"]
    products = {
        "_forward": cost.forward * out,
        "_queries": cost.queries * out,
        "_keys": cost.keys * out + cost.keys_per_group * constants["GROUPS"],
    }[function]
    return batch * length * (length + rows_held) * width * products
