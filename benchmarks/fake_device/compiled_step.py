"""Plans the kernels of compiled steps at paper size, for a GPU that is not there, and what they take next to the
baseline's: `relative_step_time` of GPUs in config/machines.yaml.

Inductor fuses operators into kernels before it writes any code. Its own plan, and its own bytes of each kernel, are
read here; no code is written, compiled or run. A kernel takes as long as its bytes or its operations, whichever is
longer. All but a few methods (`WHOLE`) are planned with few layers, and what a layer adds is multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from benchmarks.gpu_check import base_scale_specs
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec

#: Micro-batches of eight sequences that a device accumulates to a step: 512 sequences on eight devices.
ACCUMULATED = 8
BASELINE = base_scale_specs.BASELINE
#: Methods that are planned whole: `denseformer` as well, to compare the others with.
WHOLE = (BASELINE, "denseformer")
#: Variants that are planned in addition to the methods, since their steps take another time.
VARIANTS = ("selective_attn.original", "hyper.official", "attnres.whole_layers")
#: Layers that the others are planned with, in equal steps; the third only where layers read all earlier ones.
FEW, GROWING = (2, 4, 6), "attnres"
#: Machine of config/machines.yaml -> bytes a second, and operations a second of products, flash attention and kernels
#: of ours that it is estimated to do. The vendors' peaks are 3.35, 4.8 and 2.0 TB/s, 989, 989 and 312 TFLOP/s.
RATES = {
    "h100": {"bytes": 2.8e12, "products": 620e12, "flash": 250e12, "ours": 150e12},
    "h200": {"bytes": 4.0e12, "products": 620e12, "flash": 250e12, "ours": 150e12},
    "a100": {"bytes": 1.7e12, "products": 240e12, "flash": 140e12, "ours": 90e12},
}
FLASH = {"_scaled_dot_product_flash_attention": 2, "_scaled_dot_product_flash_attention_backward": 5}
#: Bytes of a step's update over those of the parameters: clipping reads gradients twice and writes them once, fused
#: AdamW reads and writes parameters, gradients and both moments.
UPDATE = 3 + 8


class _PlannedError(Exception):
    """Raised where the compiled step would run."""


def plan_kernels(spec: RunSpec, sequences: int, *, layers: int | None = None) -> dict[str, float]:
    """Kernels of one micro-batch's forward and backward pass, bytes that they move, and seconds on each machine."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from benchmarks.fake_device.fake_step import DEVICE, stand_ins
    from plumbline.model.decoder import Decoder
    from plumbline.model.numerics import autocast, set_numerics

    model_spec = spec.model if layers is None else spec.model.resize(layers=layers)
    kernels: list[tuple[str, int, int]] = []
    set_numerics(DEVICE)
    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True), stand_ins(launch=True), _planning(kernels):
        with DEVICE:
            model = Decoder(model_spec)
            tokens_BT = torch.zeros(sequences, model_spec.context, dtype=torch.long)
        compiled = torch.compile(model, fullgraph=True, dynamic=False)
        try:
            with autocast(spec.train.precision, DEVICE):
                compiled(tokens_BT, loss=True)
        except _PlannedError:
            pass
    result = {"kernels": len(kernels), "bytes": sum(moved for _, moved, _ in kernels)}
    for machine, rates in RATES.items():
        seconds = (max(moved / rates["bytes"], operations / rates[kind]) for kind, moved, operations in kernels)
        result[f"seconds_{machine}"] = sum(seconds)
    return result


@contextmanager
def _planning(kernels: list[tuple[str, int, int]]) -> Iterator[None]:
    """Let Inductor come as far as its plan of kernels: their kind, bytes and operations. What would compute constants,
    or try patterns, on the device is left out: fused attention is an operator already, and nothing is padded."""
    import torch
    from torch._inductor import config, ir
    from torch._inductor.fx_passes import fuse_attention, misc_patterns, pad_mm
    from torch._inductor.graph import GraphLowering
    from torch._inductor.scheduler import NopKernelSchedulerNode, Scheduler

    def plan(graph: GraphLowering) -> Any:
        graph.scheduler = Scheduler(graph.operations)
        for node in graph.scheduler.nodes:  # but for memory alone, or one of several results of a kernel
            if not isinstance(node, NopKernelSchedulerNode) and not isinstance(node.node, ir.MultiOutput):
                kernels.append(_describe(node))
        return SimpleNamespace(call=run, runner=None, key="", __file__="")

    def run(arguments: Any) -> Any:
        raise _PlannedError

    with ExitStack() as stack:
        stack.enter_context(patch.object(GraphLowering, "compile_to_module", plan))
        stack.enter_context(patch.object(torch.version, "cuda", "12.8"))
        patterns = {fuse_attention: "_sfdp_init", misc_patterns: "_misc_patterns_init", pad_mm: "_pad_mm_init"}
        for module, name in patterns.items():
            stack.enter_context(patch.object(module, name, lambda *arguments, **keywords: None))
        caches = {"fx_graph_cache": False, "force_disable_caches": True}
        stack.enter_context(config.patch(**caches, joint_graph_constant_folding=False, compile_threads=1))
        lowering = torch._functorch.config.patch
        stack.enter_context(lowering(force_non_lazy_backward_lowering=True, enable_autograd_cache=False))
        yield


def _describe(node: Any) -> tuple[str, int, int]:
    """Kind, bytes and operations of a kernel of the plan, from the scheduler's node."""
    from torch._inductor import ir

    parts = [part for part in node.get_nodes() if getattr(part, "node", None) is not None]
    origins = [origin for part in parts for origin in part.node.get_origins()]
    moved, kind, operations = int(node.get_read_write_buffers_sizes()), "products", 0
    launched = next((part.node for part in parts if isinstance(part.node, ir.UserDefinedTritonKernel)), None)
    flash = [(name, origin) for origin in origins for name in FLASH if name in str(origin.target).split(".")]
    if launched is not None:
        kind, operations = "ours", _count_operations(launched)
    elif flash:
        kind, (name, origin) = "flash", flash[0]
        batch, heads, length, width = origin.args[name.endswith("backward")].meta["val"].shape
        operations = FLASH[name] * batch * heads * length * (length + 1) * width
    elif node.is_extern() or node.is_template():
        operations = int(node.estimate_flops() or 0)
    return kind, moved, operations


def _count_operations(launched: Any) -> int:
    """The operations of a kernel of ours by `benchmarks.kernel_costs`, over the tiles that it visits."""
    from benchmarks.kernel_costs import COSTS

    kernel, *_ = launched.get_kernel_and_metadata()
    batch, heads, length, width = map(int, launched.kwargs["q"].get_size())
    cost, out = COSTS[kernel.fn.__module__.rpartition(".")[2]], launched.kwargs.get("OUT", heads)
    products = {
        "_forward": lambda: cost.forward * out,
        "_queries": lambda: cost.queries * out,
        "_keys": lambda: cost.keys * out + cost.keys_per_group * launched.kwargs["GROUPS"],
    }[kernel.fn.__name__]()
    return int(batch * length * (length + launched.kwargs["HELD"]) * width * products)


def list_methods() -> list[str]:
    """What is planned: methods and variants of the transfer study's base scale."""
    return [*study_config.load("transfer", "paper").methods, *VARIANTS]


def make_row(name: str, spec: RunSpec, sequences: int, layers: int | None) -> dict[str, Any]:
    """A method's kernels; `layers` of the model in place of its own, and then nothing is multiplied."""
    if layers is not None or name in WHOLE:
        return {"method": name, "planned": "whole"} | plan_kernels(spec, sequences, layers=layers)
    counts = FEW if name.split(".")[0] == GROWING else FEW[:2]
    plans = [plan_kernels(spec, sequences, layers=count) for count in counts]
    planned = f"with {', '.join(map(str, counts[:-1]))} and {counts[-1]} layers"
    return {"method": name, "planned": planned} | extrapolate(plans, spec.model.layers)


def extrapolate(plans: list[dict[str, float]], layers: int) -> dict[str, float]:
    """Numbers of so many layers from those of `FEW`: by the straight line through two, the parabola through three."""
    steps = (layers - FEW[0]) / (FEW[1] - FEW[0])
    scaled = {}
    for key in plans[0]:
        first, second, *more = (plan[key] for plan in plans)
        bend = more[0] - 2 * second + first if more else 0.0
        scaled[key] = first + steps * (second - first) + steps * (steps - 1) / 2 * bend
    return scaled


def add_update(row: dict[str, Any], machine: str) -> float:
    """Seconds of a micro-batch in a step: its passes, adding its gradients to those before (all but a step's first;
    both are read, and the sum is written), and its share of the baseline's update."""
    from plumbline.model.decoder import on_meta

    baseline = on_meta(base_scale_specs.runs("paper")[BASELINE].model)
    parameters = 4 * sum(value.numel() for value in baseline.parameters())
    moved = (3 * (ACCUMULATED - 1) + UPDATE) * parameters / ACCUMULATED
    return float(row[f"seconds_{machine}"]) + moved / RATES[machine]["bytes"]


def relative(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Machine -> method -> its micro-batch in a step over the baseline's."""
    baseline = next(row for row in rows if row["method"] == BASELINE)
    return {
        machine: {row["method"]: add_update(row, machine) / add_update(baseline, machine) for row in rows}
        for machine in RATES
    }
