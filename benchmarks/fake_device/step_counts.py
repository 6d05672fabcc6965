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
}  # fmt: skip
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
    """What a device is reckoned to do: bytes and operations a second, none of it measured.

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


class StepCounts(TorchDispatchMode):
    """Counts the operators of a ``with`` block on a CUDA device."""

    def __init__(self) -> None:
        super().__init__()
        self.phase = "forward"
        self.calls: list[KernelCall] = []
        #: What the host waits for -> how often, by file and line.
        self.waits: Counter[str] = Counter()
        #: Matrix products, convolutions and attention in float32 or float64 -> how often, by file and line.
        self.single_products: Counter[str] = Counter()
        self.held = self.peak = 0
        self._storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and count it."""
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        masked = name in INDEXED and any(value.dtype in (torch.bool, torch.uint8) for value in given[1:])
        if (name in WAITING or masked) and any(value.is_cuda for value in given):
            self.waits[f"{name} at {caller()}"] += 1
        made = func(*args, **kwargs)
        results = [value for value in tree_leaves(made) if isinstance(value, torch.Tensor)]
        self._note_moves(name, given, results)
        for value in results:
            self.hold(value)
        read, written = [value for value in given if value.is_cuda], [value for value in results if value.is_cuda]
        if func._schema.is_mutable and not results:  # on lists, which say nothing of what they changed
            written = [value for place in _changed(func) for value in tree_leaves(args[place]) if value.is_cuda]
        if written and not _only_named(func, given, written):
            self._note(func, args, kwargs, made, read, written)
        return made

    def hold(self, value: torch.Tensor) -> None:
        """Count the memory of a tensor from now on until it is freed."""
        storage = value.untyped_storage()
        key = storage._cdata
        if not value.is_cuda or key in self._storages:
            return
        size = storage.nbytes()
        self._storages.add(key)
        self.held += size
        self.peak = max(self.peak, self.held)

        def freed() -> None:
            self._storages.discard(key)
            self.held -= size

        weakref.finalize(storage, freed)

    def launched(self, name: str, *, moved: int, operations: int) -> None:
        """Count a kernel of ours, which is no operator of torch's."""
        self.calls.append(
            KernelCall(phase=self.phase, name=name, kind="ours", kernels=1, bytes=moved, operations=operations)
        )

    def _note_moves(self, name: str, given: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """A copy between host and device waits, unless it goes to the device from pinned memory."""
        if name in ("_to_copy", "copy_") and results:
            source = given[-1] if name == "copy_" else given[0]
            if source.is_cuda != results[0].is_cuda and source.numel():
                self.waits[f"copy {source.device.type} to {results[0].device.type} at {caller()}"] += 1
        elif any(value.is_cuda for value in given) and any(not value.is_cuda and value.ndim for value in given):
            self.waits[f"{name} of tensors on both at {caller()}"] += 1

    def _note(
        self, func: Any, args: Any, kwargs: Any, made: Any, given: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        name, kind, operations = func.overloadpacket.__name__, "pointwise", 0
        if name in FLASH:
            # Seeds of dropout, which there is none of, are on no device.
            kind = "flash"
            q_BHTW = given[1] if name.endswith("backward") else given[0]
            batch, heads, length, width = q_BHTW.shape
            operations = FLASH[name] * batch * heads * length * (length + 1) * width
        elif func.overloadpacket in flop_registry:
            operations = flop_registry[func.overloadpacket](*args, **kwargs, out_val=made)
            kind = "product"
        if (kind == "product" or name in UNCOUNTED_PRODUCTS) and given[0].dtype in SLOW_TYPES:
            kind = "single"
            self.single_products[f"{name} at {caller()}"] += 1
        moved = 2 * sum(map(_bytes, results)) if name in GATHERED else sum(map(_bytes, [*given, *results]))
        kernels = ceil(len(args[0]) / LIST_SHARE) if name.startswith(("_foreach", "_fused")) else 1
        self.calls.append(
            KernelCall(phase=self.phase, name=name, kind=kind, kernels=kernels, bytes=moved, operations=operations)
        )


def _changed(func: Any) -> list[int]:
    """The places of an operator's arguments that it writes to."""
    return [
        place
        for place, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _only_named(func: Any, given: list[torch.Tensor], results: list[torch.Tensor]) -> bool:
    """Whether an operator computes nothing: an allocation, or another view of what there is."""
    name = func.overloadpacket.__name__
    if "empty" in name or name in ("detach", "lift_fresh", "alias"):
        return True
    if func._schema.is_mutable:
        return False
    held = {value.untyped_storage()._cdata for value in given}
    return bool(held) and all(value.untyped_storage()._cdata in held for value in results)


def _bytes(value: torch.Tensor) -> int:
    """Bytes of a tensor, repeated dimensions once."""
    count = value.element_size()
    for size, step in zip(value.shape, value.stride(), strict=True):
        count *= size if step else 1
    return count


def caller() -> str:
    """File and line of this repository that an operator was called from; in a backward pass of torch's own there is
    none."""
    for frame in reversed(traceback.extract_stack()):
        if frame.filename.startswith(OURS):
            return f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
    return NOWHERE
