"""Counts what a step holds of a device's memory, and what a step should not do: wait for the device, and multiply
float32 numbers.
"""

from __future__ import annotations

import traceback
import weakref
from collections import Counter
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
#: Operators that wait where one of their indices is a mask, of which it is asked how many places it has.
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
#: Products that torch counts no operations of.
UNCOUNTED_PRODUCTS = {"mv", "dot", "vdot", "addmv", "addr", "ger"}
#: Where an operator is called from that no line of this repository called.
NOWHERE = "torch's own"


class StepCounts(TorchDispatchMode):
    """Counts within a ``with`` block on a CUDA device. Where the host reads a number, it gets a large one: limits are
    felt, and the step goes on.
    """

    def __init__(self, declared: str | None = None) -> None:
        """`declared`: a folder of this repository whose code may wait, and what it calls."""
        super().__init__()
        self.phase = "forward"
        self._may_wait = None if declared is None else str(ROOT / declared)
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
            if inputs[0].dtype == torch.bool:
                return True
            return 1000.0 if inputs[0].is_floating_point() else 1
        result = func(*args, **kwargs)
        results = [value for value in tree_leaves(result) if isinstance(value, torch.Tensor)]
        self._note_moves(name, inputs, results)
        for value in results:
            self.hold(value)
        is_product = func.overloadpacket in flop_registry or name in UNCOUNTED_PRODUCTS
        if is_product and inputs[0].dtype in (torch.float32, torch.float64) and inputs[0].is_cuda:
            self.single_products[f"{name} at {find_caller()}"] += 1
        return result

    def hold(self, value: torch.Tensor) -> None:
        """Count the memory of a tensor from now on until it is freed."""
        storage = value.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if not value.is_cuda or key in self._storages:
            return
        self._storages.add(key)
        self.held += size
        self.peaks[self.phase] = max(self.peaks[self.phase], self.held)

        def free() -> None:
            self._storages.discard(key)
            self.held -= size

        weakref.finalize(storage, free)

    def wait(self, operator: str) -> None:
        """Count that the host waits here."""
        folder = self._may_wait
        may = folder is not None and any(frame.filename.startswith(folder) for frame in traceback.extract_stack())
        waits = self.declared if may else self.waits
        waits[f"{operator} at {find_caller()}"] += 1

    def _note_moves(self, name: str, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """A copy between host and device waits, unless it goes to the device from pinned memory."""
        if name in ("_to_copy", "copy_") and results:
            source = inputs[-1] if name == "copy_" else inputs[0]
            if source.is_cuda != results[0].is_cuda and source.numel():
                self.wait(f"copy {source.device.type} to {results[0].device.type}")
        elif any(value.is_cuda for value in inputs) and any(not value.is_cuda and value.ndim for value in inputs):
            self.wait(f"{name} of tensors on both")


def find_caller(trace: TracebackType | None = None) -> str:
    """File and line of this repository that an operator was called from, or that an error with this trace came from; in
    a backward pass of torch's own there is none."""
    for frame in reversed(traceback.extract_stack() if trace is None else traceback.extract_tb(trace)):
        if frame.filename.startswith(OURS):
            return f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
    return NOWHERE
