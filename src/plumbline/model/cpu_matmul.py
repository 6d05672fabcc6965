"""Multiplies float32 matrices on a CPU by oneDNN, which uses the widest vectors on every maker's processors.

The library that torch calls for them (MKL) takes narrower ones on processors that are not its maker's: 95 billion
operations a second on one core of an AMD EPYC with AVX-512, of 220. With AVX2 alone both come to 60 to 80 of some 100,
and torch's way is left as it is. The sums are float32 here and there, in another order.

In a graph of torch.compile the same products stand as an operator of ours, which its back end calls and looks no
further into: of oneDNN's own it takes only those whose matrix is a constant, and for any other asks MKL.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.nn import functional

#: Multiplications below which a product is left to MKL: oneDNN makes a kernel for each shape, in half a millisecond,
#: and what a call costs beside its product is felt. Without AVX-512 all are.
LEAST = 5_000_000 if torch.backends.cpu.get_cpu_capability() == "AVX512" else math.inf

_AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
_shapes_vary = False


@contextmanager
def varied_shapes() -> Iterator[None]:
    """Leave products in the block to MKL where it is as fast: it makes no kernel for each shape, which may come once.

    For results that no training goes on from: the sums are in another order.
    """
    global _shapes_vary  # no ContextVar: torch.compile does not follow one
    before, _shapes_vary = _shapes_vary, True
    try:
        yield
    finally:
        _shapes_vary = before


@functools.cache
def _is_mkl_processor() -> bool:
    """Whether the processor is of MKL's maker, so that MKL takes its widest vectors; False where nothing says so."""
    info = Path("/proc/cpuinfo")
    return info.is_file() and "GenuineIntel" in info.read_text(encoding="utf-8", errors="replace")


def linear(x: torch.Tensor, weight_OI: torch.Tensor, bias_O: torch.Tensor | None = None) -> torch.Tensor:
    """x W^T + bias over the last dimension, with gradients: `torch.nn.functional.linear`, made faster on a CPU."""
    if not _uses_onednn(x, weight_OI):
        return functional.linear(x, weight_OI, bias_O)
    x_XI = x.flatten(0, -2)
    if torch.is_grad_enabled():
        product: torch.Tensor = _Linear.apply(x_XI, weight_OI, bias_O)
    else:
        product = _multiply(x_XI, weight_OI, bias_O)
    return product.unflatten(0, x.shape[:-1])


def product(x_XI: torch.Tensor, y_OI: torch.Tensor) -> torch.Tensor:
    """x y^T (X, O) for matrices of any strides, without gradients."""
    return _multiply(x_XI, y_OI, None) if _uses_onednn(x_XI, y_OI) else x_XI @ y_OI.T


def _uses_onednn(x: torch.Tensor, y_OI: torch.Tensor) -> bool:
    """Whether oneDNN is asked: float32 on a CPU, and nothing narrowed by autocast."""
    return (
        _AVAILABLE
        and x.device.type == "cpu"
        and x.dtype == y_OI.dtype == torch.float32
        and x.numel() * len(y_OI) >= LEAST
        and x.dim() > 1
        and not torch.is_autocast_enabled("cpu")
        and type(y_OI) in (torch.Tensor, torch.nn.Parameter)
        and not (_shapes_vary and _is_mkl_processor())
    )


def _multiply(x_XI: torch.Tensor, y_OI: torch.Tensor, bias_O: torch.Tensor | None) -> torch.Tensor:
    x_XI, y_OI = (value if _has_own_places(value) else value.contiguous() for value in (x_XI, y_OI))
    bias_O = None if bias_O is None else bias_O.contiguous()
    if torch.compiler.is_compiling():
        return torch.ops.plumbline.product(x_XI, y_OI, bias_O)
    return _multiply_by_onednn(x_XI, y_OI, bias_O)


def _has_own_places(value: torch.Tensor) -> bool:
    """Whether each number of a matrix has its own place in memory, which oneDNN wants: a gradient may be one number."""
    (inner, size), (outer, _) = sorted(zip(value.stride(), value.shape, strict=True))
    return inner > 0 and outer >= inner * size


def _multiply_by_onednn(x_XI: torch.Tensor, y_OI: torch.Tensor, bias_O: torch.Tensor | None) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x_XI, y_OI, bias_O, "none", [], "")


# Without gradients of its own: `_Linear` has them, and gives them to a graph as well.
# Copies of this file stand beside exported models, of which a process may load several: the first one defines it.
_LIBRARY = torch.library.Library("plumbline", "FRAGMENT")
if not hasattr(torch.ops.plumbline, "product"):
    _LIBRARY.define("product(Tensor x, Tensor y, Tensor? bias) -> Tensor")
    _LIBRARY.impl("product", _multiply_by_onednn, "CPU")
    # Not as torch registers one, which looks the caller up among all modules: a tenth of a second of each process.
    _LIBRARY.impl("product", lambda x_XI, y_OI, bias_O: x_XI.new_empty(len(x_XI), len(y_OI)), "Meta")


class _Linear(torch.autograd.Function):
    """y = x W^T + b:  dx = dy W,  dW = dy^T x,  db the sum of dy over rows."""

    @staticmethod
    def forward(ctx, x_XI: torch.Tensor, weight_OI: torch.Tensor, bias_O: torch.Tensor | None) -> torch.Tensor:
        ctx.save_for_backward(x_XI, weight_OI)
        return _multiply(x_XI, weight_OI, bias_O)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy_XO: torch.Tensor):
        x_XI, weight_OI = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            product(dy_XO, weight_OI.T) if wants_x else None,
            weight_gradient(dy_XO, x_XI) if wants_weight else None,
            dy_XO.sum(0) if wants_bias else None,
        )


def weight_gradient(dy_XO: torch.Tensor, x_XI: torch.Tensor) -> torch.Tensor:
    """The gradient dy^T x (O, I) of a linear map's weight, with the longer side as columns, which is faster."""
    if dy_XO.shape[1] > x_XI.shape[1]:
        return product(x_XI.T, dy_XO.T).T
    return product(dy_XO.T, x_XI.T)
