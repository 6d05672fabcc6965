"""Takes one micro-batch's step of a run's model on a CUDA device that is not there (`absent_cuda` comes first)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import triton
from torch._subclasses.fake_tensor import FakeTensorMode

from benchmarks.fake_device.step_counts import StepCounts
from plumbline.kernels.costs import COSTS
from plumbline.kernels.selection import TABLE
from plumbline.model.decoder import Decoder
from plumbline.runtime.numerics import autocast, numerics
from plumbline.specs.spec import RunSpec
from plumbline.train.run_optimizer import RunOptimizer

DEVICE = torch.device("cuda", 0)


class FakeStep:
    """A step that was taken: its counts, and what its parameters got.

    Attributes:
        counts: of kernels, bytes, operations, waits and memory.
        parameters: bytes that the parameters take.
        without_gradient: names of parameters that got none, or one of another type.
    """

    def __init__(self, spec: RunSpec, sequences: int, *, layers: int | None = None) -> None:
        """Take the step: forward, backward, clipping, update.

        Args:
            layers: of the model, in place of the spec's.
        """
        model_spec = spec.model if layers is None else spec.model.resized(layers=layers)
        self.counts = StepCounts()
        numerics(DEVICE)
        with FakeTensorMode(), stand_ins(self.counts):
            with DEVICE:
                model = Decoder(model_spec)
                tokens_BT = torch.zeros(sequences, model_spec.context, dtype=torch.long)
                skip = torch.zeros(())
            for value in model.parameters():
                self.counts.hold(value)
            self.parameters = self.counts.held
            optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, precision=spec.train.precision)
            self._made_before(optimizer, skip)
            with self.counts:
                with autocast(spec.train.precision, DEVICE):
                    loss = model(tokens_BT, loss=True) / (sequences * (model_spec.context - 1))
                self.counts.phase = "backward"
                loss.backward()
                self.without_gradient = [
                    f"{name}: {None if value.grad is None else value.grad.dtype}"
                    for name, value in model.named_parameters()
                    if value.grad is None or value.grad.dtype != value.dtype
                ]
                self.counts.phase = "update"
                optimizer.clip()
                optimizer.step(1, 1e-3, skip)
                optimizer.zero_grad()

    def _made_before(self, optimizer: RunOptimizer, skip: torch.Tensor) -> None:
        """Have the optimizer make its state, as a first step does, by an update that is not counted."""
        for value in optimizer.parameters.values():
            value.grad = torch.zeros_like(value)
        optimizer.step(1, 1e-3, skip)
        optimizer.zero_grad()
        for value in optimizer.tensors().values():
            self.counts.hold(value)


def graphs(spec: RunSpec, sequences: int, *, layers: int | None = None) -> int:
    """Trace the forward pass as torch.compile does, whole or not at all; returns how many graphs there are.

    Raises:
        torch._dynamo.exc.TorchDynamoException: it is not one graph.
    """
    model_spec = spec.model if layers is None else spec.model.resized(layers=layers)
    made: list[Any] = []

    def keep(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        made.append(graph)
        return graph.forward

    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True), stand_ins(None):
        with DEVICE:
            model = Decoder(model_spec)
            tokens_BT = torch.zeros(sequences, model_spec.context, dtype=torch.long)
        with autocast(spec.train.precision, DEVICE):
            torch.compile(model, backend=keep, fullgraph=True, dynamic=False)(tokens_BT, loss=True)
    return len(made)


@contextmanager
def stand_ins(counts: StepCounts | None) -> Iterator[None]:
    """Have fused attention be flash attention's operators, as torch chooses on such a device, and count launches of our
    kernels instead of compiling them."""
    plain, launch = torch.nn.functional.scaled_dot_product_attention, triton.runtime.jit.JITFunction.run
    callers = [module for module in sys.modules.values() if getattr(module, plain.__name__, None) is plain]
    try:
        for module in callers:
            setattr(module, plain.__name__, _flash)
        if counts is not None:
            triton.runtime.jit.JITFunction.run = lambda kernel, *given, **named: _launched(counts, kernel, given, named)
        yield
    finally:
        for module in callers:
            setattr(module, plain.__name__, plain)
        triton.runtime.jit.JITFunction.run = launch


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


def _launched(counts: StepCounts, kernel: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Count a launch of a kernel of ours; its tensors have to be on the device."""
    tensors = [value for value in given if isinstance(value, torch.Tensor)]
    assert all(value.is_cuda for value in tensors), f"{name_of(kernel)} gets tensors of the host"
    moved = sum(value.numel() * value.element_size() for value in tensors)
    operations = kernel_operations(kernel, tuple(tensors[0].shape), named)
    counts.launched(name_of(kernel), moved=moved, operations=operations)


def name_of(kernel: Any) -> str:
    """A kernel's module and function, as softpick_forward."""
    return kernel.fn.__module__.rpartition(".")[2] + kernel.fn.__name__


def kernel_operations(kernel: Any, shape_BHTW: tuple[int, ...], constants: dict[str, Any]) -> int:
    """The operations of a kernel of ours by `plumbline.kernels.costs`, over the tiles that it visits."""
    module, function = kernel.fn.__module__.rpartition(".")[2], kernel.fn.__name__
    assert module in TABLE, f"{function} is a kernel of no mixer"
    batch, heads, length, width = shape_BHTW
    cost, out, held = COSTS[module], constants.get("OUT", heads), constants["HELD"]
    products = {
        "_forward": cost.forward * out,
        "_queries": cost.queries * out,
        "_keys": cost.keys * out + cost.keys_per_group * constants["GROUPS"],
    }[function]
    return batch * length * (length + held) * width * products
