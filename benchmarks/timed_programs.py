"""Training steps of several models in turn, each in a process of its own, beside their own matrix products alone.

A step is: forward pass with the model's own loss, backward pass, gradient norm clipped at 1, fused AdamW, gradients
dropped, on one thread and random tokens of one seed. Its CPU seconds are taken. Its products are those that it hands to
the library as products (attention's, where it is one fused call, are not among them): their shapes, strides and types
are recorded in one step that is not compiled, and then all of them are called again on random numbers, with nothing
between them.
"""

from __future__ import annotations

import functools
import multiprocessing
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Label -> shape. The first is the transfer study's at `demo`.
SHAPES: dict[str, dict[str, int]] = {
    "1.2M": {
        "layers": 4, "width": 128, "heads": 8, "groups": 2, "ffn": 352, "vocabulary": 4096, "context": 128,
        "sequences": 18,
    },
    "6M": {
        "layers": 6, "width": 256, "heads": 8, "groups": 2, "ffn": 704, "vocabulary": 8192, "context": 256,
        "sequences": 16,
    },
    "25M": {
        "layers": 8, "width": 512, "heads": 8, "groups": 2, "ffn": 1408, "vocabulary": 8192, "context": 256,
        "sequences": 8,
    },
}  # fmt: skip

#: Of a model: its parameters' owner, the loss of a batch, and how many parameters it has.
Built = tuple[Any, Callable[[Any], Any], int]


def resize(spec: Any, shape: dict[str, int]) -> Any:
    """A model spec of this shape."""
    import msgspec

    return msgspec.structs.replace(
        spec,
        layers=shape["layers"], width=shape["width"], heads=shape["heads"], key_value_heads=shape["groups"],
        head_width=shape["width"] // shape["heads"], ffn_width=shape["ffn"], vocabulary=shape["vocabulary"],
        context=shape["context"],
    )  # fmt: skip


def ours(shape: dict[str, int], compiled: bool, precision: str) -> Built:
    """The baseline decoder of the transfer study, compiled as the trainer compiles it."""
    import torch

    from plumbline.model.decoder import create
    from plumbline.model.distributed import RankGroup
    from plumbline.model.numerics import autocast, numerics
    from plumbline.specs import study_config
    from plumbline.train.compiling import CompiledModel

    numerics(torch.device("cpu"))
    runs = study_config.load("transfer", "demo").runs.values()
    spec = next(run.spec.model for run in runs if (run.spec.scale, run.spec.method) == ("base", "baseline"))
    model = create(resize(spec, shape), 0)
    forward: Any = model
    if compiled:
        forward = CompiledModel(model, model, RankGroup(rank=0, world=1, device=model.embedding.device), None)
        if forward.fault:
            raise RuntimeError(forward.fault)
    predicted = shape["sequences"] * (shape["context"] - 1)

    def loss(tokens_BT: Any) -> Any:
        with autocast(precision, tokens_BT.device):
            return forward(tokens_BT, loss=True) / predicted

    return model, loss, sum(value.numel() for value in model.parameters())


def _record_products(step: Callable[[], Any]) -> Callable[[], None]:
    """Take a step; returns what calls its products again, on other numbers."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    recorded = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
    recorded.add(torch.ops.mkldnn._linear_pointwise.default)
    calls, tensors = [], {}

    def stand_in(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        key = (value.shape, value.stride(), value.dtype)
        if key not in tensors:
            tensor = torch.empty_strided(*key[:2], dtype=value.dtype)
            tensors[key] = tensor.copy_(torch.randn(value.shape))
        return tensors[key]

    class _Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function in recorded:
                calls.append((function, [stand_in(value) for value in args], kwargs or {}))
            return function(*args, **(kwargs or {}))

    with _Recorder():
        step()

    @torch.no_grad()
    def call_products() -> None:
        for function, arguments, keywords in calls:
            function(*arguments, **keywords)

    return call_products


def _work(pipe: Any, build: Callable[..., Built], arguments: tuple[Any, ...], kept_memory: bool) -> None:
    """A side's process: the CPU seconds of a step, or of its products alone, whenever it is asked for one."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        if kept_memory:
            from plumbline.model.numerics import numerics

            numerics(torch.device("cpu"))
            torch.set_deterministic_debug_mode("default")
        model, loss_of, parameters = build(*arguments)
        shape = arguments[0]
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        tokens_BT = torch.randint(shape["vocabulary"], (shape["sequences"], shape["context"]))

        def step() -> None:
            loss = loss_of(tokens_BT)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            loss.item()

        for _ in range(2):
            step()
        tasks = {"step": step}
        pipe.send(parameters)
        while name := pipe.recv():
            if name not in tasks:
                tasks[name] = _record_products(step)
                tasks[name]()
            began = time.process_time()
            tasks[name]()
            pipe.send(time.process_time() - began)
    except Exception as error:  # told to whoever asked, who writes it down
        traceback.print_exc()
        absent = isinstance(error, ModuleNotFoundError)
        first = (str(error).splitlines() or [type(error).__name__])[0]
        pipe.send(f"not installed ({error.name})" if absent else f"fails ({first[:80]})")


class TimedProgram:
    """A model's step, in a process of its own, which starts at once and takes two of them."""

    def __init__(self, build: Callable[..., Built], arguments: tuple[Any, ...], kept_memory: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, build, arguments, kept_memory), daemon=True)
        self._process.start()
        theirs.close()

    @functools.cached_property
    def _start(self) -> int | str:
        return self._pipe.recv()

    @property
    def fault(self) -> str | None:
        """Why there is no step to time; None if there is."""
        return self._start if isinstance(self._start, str) else None

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""
        assert isinstance(self._start, int)
        return self._start

    def seconds(self, task: str) -> float:
        """CPU seconds of one `step`, or of its `products` alone."""
        self._pipe.send(task)
        answer = self._pipe.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"{task}: {answer}")
        return float(answer)

    def close(self) -> None:
        """End the process."""
        if self.fault is None:
            self._pipe.send("")
        self._process.join()


@dataclass(slots=True)
class Timings:
    """CPU seconds of a side, round by round."""

    steps: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)


def time_in_turn(sides: dict[str, TimedProgram], with_products: set[str], rounds: int) -> dict[str, Timings]:
    """Take a step of each side in turn, and where asked its products alone just after it; then end all."""
    timings = {name: Timings() for name, side in sides.items() if side.fault is None}
    for _ in range(rounds):
        for name, timing in timings.items():
            timing.steps.append(sides[name].seconds("step"))
            if name in with_products:
                timing.products.append(sides[name].seconds("products"))
    for side in sides.values():
        side.close()
    return timings


def ratios(numerators: list[float], denominators: list[float]) -> tuple[float, float, float]:
    """Median, least and most of ratios within rounds."""
    values = [above / below for above, below in zip(numerators, denominators, strict=True)]
    return statistics.median(values), min(values), max(values)
