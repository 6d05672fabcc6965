"""Has torch's Inductor plan the kernels of a compiled step for a GPU that is not there, and counts what they move.

Inductor fuses operators into kernels before it writes any code. Its own plan, its own bytes of each kernel and the
operators that went into it are read here; no code is written, compiled or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch._inductor import config, ir
from torch._inductor.fx_passes import fuse_attention, misc_patterns, pad_mm
from torch._inductor.graph import GraphLowering
from torch._inductor.scheduler import NopKernelSchedulerNode, Scheduler
from torch._subclasses.fake_tensor import FakeTensorMode

from benchmarks.fake_device.fake_step import DEVICE, kernel_operations, stand_ins
from benchmarks.fake_device.step_counts import FLASH, ROOT, Rates
from plumbline.model.decoder import Decoder
from plumbline.model.numerics import autocast, set_numerics
from plumbline.specs.spec import RunSpec

MODEL = "src/plumbline/model/"


class _PlannedError(Exception):
    """Raised where the compiled step would run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedKernel:
    """A kernel of Inductor's plan.

    Attributes:
        phase: forward or backward.
        kind: product, flash, ours, or pointwise (what Inductor writes itself, sums included).
        files: of the model, whose operators went into it.
        operators: their names.
    """

    phase: str
    kind: str
    files: tuple[str, ...]
    operators: tuple[str, ...]
    bytes: int
    operations: int

    def seconds(self, rates: Rates) -> float:
        """The time that its bytes or its operations take, whichever is longer; launches overlap with the device."""
        speed = {"flash": rates.flash, "ours": rates.ours}.get(self.kind, rates.products)
        return max(self.bytes / rates.bytes, self.operations / speed)


def plan_kernels(spec: RunSpec, sequences: int, *, layers: int | None = None) -> list[PlannedKernel]:
    """The kernels of one micro-batch's forward and backward pass, in their order."""
    model_spec = spec.model if layers is None else spec.model.resize(layers=layers)
    graphs: list[list[PlannedKernel]] = []
    set_numerics(DEVICE)
    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True), stand_ins(None), _planning(graphs):
        with DEVICE:
            model = Decoder(model_spec)
            tokens_BT = torch.zeros(sequences, model_spec.context, dtype=torch.long)
        compiled = torch.compile(model, fullgraph=True, dynamic=False)
        try:
            with autocast(spec.train.precision, DEVICE):
                compiled(tokens_BT, loss=True)
        except _PlannedError:
            pass
    assert len(graphs) == 2, "a graph forward and one backward"
    return [kernel for graph in graphs for kernel in graph]


@contextmanager
def _planning(graphs: list[list[PlannedKernel]]) -> Iterator[None]:
    """Let Inductor come as far as its plan of kernels. What would compute constants, or try patterns, on the device is
    left out: fused attention is an operator already, and nothing is padded."""

    def plan(graph: GraphLowering) -> Any:
        graph.scheduler = Scheduler(graph.operations)
        phase = "backward" if graphs else "forward"
        graphs.append([_kernel(phase, node) for node in graph.scheduler.nodes if not _only_named(node)])
        return SimpleNamespace(call=_run, runner=None, key="", __file__="")

    patches = [(GraphLowering, "compile_to_module", plan), (torch.version, "cuda", "12.8")]
    patches += [(fuse_attention, "_sfdp_init", _nothing), (misc_patterns, "_misc_patterns_init", _nothing)]
    patches += [(pad_mm, "_pad_mm_init", _nothing)]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    settings = {"fx_graph_cache": False, "force_disable_caches": True, "joint_graph_constant_folding": False}
    lowering = torch._functorch.config.patch(force_non_lazy_backward_lowering=True, enable_autograd_cache=False)
    try:
        for owner, name, value in patches:
            setattr(owner, name, value)
        with config.patch(**settings, compile_threads=1), lowering:
            yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _only_named(node: Any) -> bool:
    """Whether a node of the plan is not a kernel: memory alone, or one of several results of a kernel."""
    return isinstance(node, NopKernelSchedulerNode) or isinstance(node.node, ir.MultiOutput)


def _nothing(*arguments: Any, **keywords: Any) -> None:
    """Prepare nothing."""


def _run(arguments: Any) -> Any:
    raise _PlannedError


def _kernel(phase: str, node: Any) -> PlannedKernel:
    """A kernel of the plan, from the scheduler's node."""
    parts = [part for part in node.get_nodes() if getattr(part, "node", None) is not None]
    origins = [origin for part in parts for origin in part.node.get_origins()]
    names = tuple(dict.fromkeys(str(origin.target) for origin in origins))
    kind, operations = "pointwise", 0
    launched = next((part.node for part in parts if isinstance(part.node, ir.UserDefinedTritonKernel)), None)
    attention = next((name for name in FLASH if any(name in operator.split(".") for operator in names)), None)
    if launched is not None:
        kind, operations = "ours", _count_operations(launched)
    elif attention is not None:
        kind = "flash"
        batch, heads, length, width = _argument(origins, attention).shape
        operations = FLASH[attention] * batch * heads * length * (length + 1) * width
    elif node.is_extern() or node.is_template():
        operations = node.estimate_flops() or 0
        kind = "product" if operations else "pointwise"
    return PlannedKernel(
        phase=phase,
        kind=kind,
        files=tuple(dict.fromkeys(file for origin in origins for file in _files(origin))),
        operators=names,
        bytes=int(node.get_read_write_buffers_sizes()),
        operations=int(operations),
    )


def _count_operations(kernel_node: ir.UserDefinedTritonKernel) -> int:
    """The operations of a launch of a kernel of ours, whose first argument are queries."""
    kernel, *_ = kernel_node.get_kernel_and_metadata()
    return kernel_operations(kernel, tuple(map(int, kernel_node.kwargs["q"].get_size())), kernel_node.kwargs)


def _argument(origins: list[torch.fx.Node], name: str) -> torch.Tensor:
    """The queries of fused attention, by the fake tensors of its graph."""
    node = next(origin for origin in origins if name in str(origin.target).split("."))
    value: torch.Tensor = node.args[1 if name.endswith("backward") else 0].meta["val"]
    return value


def _files(origin: torch.fx.Node) -> list[str]:
    """The innermost line of the model that an operator, or the one that it is the gradient of, was called from."""
    paths = re.findall(r'File "([^"]+)", line \d+', origin.meta.get("stack_trace") or "")
    model, kernels = str(ROOT / MODEL), str(ROOT / MODEL / "kernels")
    ours = [path for path in paths if path.startswith(model) and not path.startswith(kernels)]
    return [str(Path(ours[-1]).relative_to(ROOT / MODEL))] if ours else []
