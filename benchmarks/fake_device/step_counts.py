"""Counts what operators ask of a device: kernels, bytes, operations, memory, and what a step should not do.

Every operator of torch's that computes something counts as a kernel that reads each of its inputs and writes each of
its outputs once (a dimension that is only repeated is read once). Views and allocations are none. A call on a list of
tensors is a kernel for each `LIST_SHARE` of them.
"""

from __future__ import annotations

import traceback
import weakref
from collections import Counter
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

ROOT = Path(__file__).resolve().parents[2]
#: Folders whose lines are named: the operator's caller is looked for in them.
OURS = tuple(str(ROOT / folder) for folder in ("src/plumbline", "studies"))
#: Operators for whose result the host has to wait.
WAITING = {
    "_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select", "_unique2", "unique_dim", "bincount",
    "unique_consecutive", "_linalg_check_errors", "linalg_inv_ex", "linalg_solve_ex", "linalg_cholesky_ex",
    "_linalg_eigh", "_linalg_svd",
}  # fmt: skip
#: What the host reads where it asks a device that is not there for a number: large, so that limits are felt.
READ = {bool: True, int: 1, float: 1000.0}
#: A line that waits so often in one step goes round until a number changes, which none does here.
MOST_WAITS = 10_000
#: Operators that wait where one of their indices is a mask, of which it is asked how many places it has.
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
#: Products that torch counts no operations of.
UNCOUNTED_PRODUCTS = {"mv", "dot", "vdot", "addmv", "addr", "ger"}
#: Number types that tensor cores do not multiply at full speed.
SLOW_TYPES = (torch.float32, torch.float64)
FLASH = {"_scaled_dot_product_flash_attention": 2, "_scaled_dot_product_flash_attention_backward": 5}
#: Where an operator is called from that no line of this repository called.
NOWHERE = "torch's own"
LIST_SHARE = 64
#: Operators of few tensors' worth: what is gathered or scattered is the size of the result, not of the table.
GATHERED = {"embedding", "index", "index_select", "gather"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What a device is estimated to do: bytes and operations a second, none of it measured.

    Attributes:
        launch: seconds that the host takes for each kernel.
    """

    bytes: float = 2.8e12
    products: float = 620e12
    single: float = 50e12
    flash: float = 250e12
    ours: float = 150e12
    launch: float = 4.5e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelCall:
    """One kernel, or several of a call on a list: what it is, and in which phase of a step it runs."""

    phase: str
    name: str
    kind: str
    kernels: int
    bytes: int
    operations: int

    def seconds(self, rates: Rates) -> float:
        """The time that its bytes, its operations or its launch take, whichever is longest."""
        speed = {"flash": rates.flash, "ours": rates.ours, "single": rates.single}.get(self.kind, rates.products)
        return max(self.bytes / rates.bytes, self.operations / speed, self.kernels * rates.launch)


class EndlessWaitError(Exception):
    """Raised where a step seems to wait for a number that never comes."""


class StepCounts(TorchDispatchMode):
    """Counts the operators of a ``with`` block on a CUDA device.

    Where the host reads a number, it gets that of `READ`, and the step goes on.
    """

    def __init__(self, declared: tuple[str, ...] = ()) -> None:
        """`declared`: folders of this repository whose code may wait, and what it calls."""
        super().__init__()
        self.phase = "forward"
        self.calls: list[KernelCall] = []
        self._may_wait = tuple(str(ROOT / folder) for folder in declared)
        #: What the host waits for -> how often, by file and line; `declared`: where it may.
        self.waits: Counter[str] = Counter()
        self.declared: Counter[str] = Counter()
        #: Matrix products, convolutions and attention in float32 or float64 -> how often, by file and line.
        self.single_products: Counter[str] = Counter()
        self.held = 0
        self.peaks: Counter[str] = Counter()  # bytes held at most, by phase
        self._storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and count it."""
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        inputs = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        masked = name in INDEXED and any(value.dtype in (torch.bool, torch.uint8) for value in inputs[1:])
        if (name in WAITING or masked) and any(value.is_cuda for value in inputs):
            self.wait(name)
        if name == "_local_scalar_dense" and inputs[0].is_cuda:
            return number_read(inputs[0])
        result = func(*args, **kwargs)
        results = [value for value in tree_leaves(result) if isinstance(value, torch.Tensor)]
        self._note_moves(name, inputs, results)
        for value in results:
            self.hold(value)
        read, written = [value for value in inputs if value.is_cuda], [value for value in results if value.is_cuda]
        if func._schema.is_mutable and not results:  # on lists, which say nothing of what they changed
            written = [
                value for place in _list_written_places(func) for value in tree_leaves(args[place]) if value.is_cuda
            ]
        if written and not _only_named(func, inputs, written):
            self._note(func, args, kwargs, result, read, written)
        return result

    def hold(self, value: torch.Tensor) -> None:
        """Count the memory of a tensor from now on until it is freed."""
        storage = value.untyped_storage()
        key = storage._cdata
        if not value.is_cuda or key in self._storages:
            return
        size = storage.nbytes()
        self._storages.add(key)
        self.held += size
        self.peaks[self.phase] = max(self.peaks[self.phase], self.held)

        def freed() -> None:
            self._storages.discard(key)
            self.held -= size

        weakref.finalize(storage, freed)

    def wait(self, operator: str) -> None:
        """Count that the host waits here.

        Raises:
            EndlessWaitError: it does so without end.
        """
        waits = self.declared if is_called_from(self._may_wait) else self.waits
        waits[place := f"{operator} at {caller()}"] += 1
        if waits[place] > MOST_WAITS:
            raise EndlessWaitError(f"waits more than {MOST_WAITS:,} times")

    def add_launch(self, name: str, *, moved: int, operations: int) -> None:
        """Count a kernel of ours, which is not an operator of torch's."""
        self.calls.append(
            KernelCall(phase=self.phase, name=name, kind="ours", kernels=1, bytes=moved, operations=operations)
        )

    def _note_moves(self, name: str, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """A copy between host and device waits, unless it goes to the device from pinned memory."""
        if name in ("_to_copy", "copy_") and results:
            source = inputs[-1] if name == "copy_" else inputs[0]
            if source.is_cuda != results[0].is_cuda and source.numel():
                self.wait(f"copy {source.device.type} to {results[0].device.type}")
        elif any(value.is_cuda for value in inputs) and any(not value.is_cuda and value.ndim for value in inputs):
            self.wait(f"{name} of tensors on both")

    def _note(
        self, func: Any, args: Any, kwargs: Any, result: Any, inputs: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        name, kind, operations = func.overloadpacket.__name__, "pointwise", 0
        if name in FLASH:
            # Seeds of dropout, which there is none of, are on no device.
            kind = "flash"
            q_BHTW = inputs[1] if name.endswith("backward") else inputs[0]
            batch, heads, length, width = q_BHTW.shape
            operations = FLASH[name] * batch * heads * length * (length + 1) * width
        elif func.overloadpacket in flop_registry:
            operations = flop_registry[func.overloadpacket](*args, **kwargs, out_val=result)
            kind = "product"
        if (kind == "product" or name in UNCOUNTED_PRODUCTS) and inputs[0].dtype in SLOW_TYPES:
            kind = "single"
            self.single_products[f"{name} at {caller()}"] += 1
        moved = 2 * sum(map(_bytes, results)) if name in GATHERED else sum(map(_bytes, [*inputs, *results]))
        kernels = ceil(len(args[0]) / LIST_SHARE) if name.startswith(("_foreach", "_fused")) else 1
        self.calls.append(
            KernelCall(phase=self.phase, name=name, kind=kind, kernels=kernels, bytes=moved, operations=operations)
        )


def _list_written_places(func: Any) -> list[int]:
    """The places of an operator's arguments that it writes to."""
    return [
        place
        for place, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _only_named(func: Any, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> bool:
    """Whether an operator computes nothing: an allocation, or another view of what there is."""
    name = func.overloadpacket.__name__
    if "empty" in name or name in ("detach", "lift_fresh", "alias"):
        return True
    if func._schema.is_mutable:
        return False
    storages = {value.untyped_storage()._cdata for value in inputs}
    return bool(storages) and all(value.untyped_storage()._cdata in storages for value in results)


def _bytes(value: torch.Tensor) -> int:
    """Bytes of a tensor, repeated dimensions once."""
    count = value.element_size()
    for size, step in zip(value.shape, value.stride(), strict=True):
        count *= size if step else 1
    return count


def number_read(value: torch.Tensor) -> Any:
    """The number that the host gets for one of a tensor's type."""
    if value.dtype == torch.bool:
        return READ[bool]
    return READ[float] if value.is_floating_point() else READ[int]


def is_called_from(folders: tuple[str, ...]) -> bool:
    """Whether one of the calls that led here is in one of the folders."""
    return bool(folders) and any(frame.filename.startswith(folders) for frame in traceback.extract_stack())


def caller(trace: TracebackType | None = None) -> str:
    """File and line of this repository that an operator was called from, or that an error with this trace came from; in
    a backward pass of torch's own there is none."""
    for frame in reversed(traceback.extract_stack() if trace is None else traceback.extract_tb(trace)):
        if frame.filename.startswith(OURS):
            return f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
    return NOWHERE
