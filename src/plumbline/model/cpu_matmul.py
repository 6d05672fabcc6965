"""Multiplies float32 matrices on a CPU by oneDNN, which uses the widest vectors on every maker's processors.

The library that torch calls for them (MKL) takes narrower ones on processors that are not its maker's: 95 billion
operations a second on one core of an AMD EPYC with AVX-512, of 220. With AVX2 alone both come to 60 to 80 of some 100,
and torch's way is left as it is. The sums are float32 here and there, in another order.

In a graph of torch.compile the same products stand as an operator of ours, which its back end calls and looks no
further into: of oneDNN's own it takes only those whose matrix is a constant, and for any other asks MKL.

`rounded_inputs` has the inputs of these products rounded to bfloat16, and their sums in float32. Where a processor has
instructions for it, oneDNN rounds them; on others it ignores what it is asked for, and promises nothing by shape. So
each shape is tried once, and where it does not round, inputs are rounded before float32 products: the same numbers but
for the order of sums, without the speed.
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
_inputs_rounded = False
#: By shape and strides of a product whose inputs are rounded: whether oneDNN rounds them.
_LIBRARY_ROUNDS: dict[tuple[object, ...], bool] = {}
#: The most that a product of rounded inputs may be off, as a share of the sum of what is added without signs: float32
#: sums are off by 1e-7, inputs that are not rounded by 7e-4.
_LARGEST_ERROR = 5e-6
#: Rows of a product that is tried which are compared.
_COMPARED = 8


@contextmanager
def varied_shapes() -> Iterator[None]:
    """Leave products in the block to MKL where it is as fast: it makes no kernel for each shape, which may come once.

    For results that no training goes on from: the sums are in another order.
    """
    global _shapes_vary  # no ContextVar: torch.compile does not follow one
    old_value, _shapes_vary = _shapes_vary, True
    try:
        yield
    finally:
        _shapes_vary = old_value


@contextmanager
def rounded_inputs() -> Iterator[None]:
    """Round the inputs of products in the block, and of their gradients' products, to bfloat16; of float32 on a CPU."""
    global _inputs_rounded  # no ContextVar: torch.compile does not follow one
    old_value, _inputs_rounded = _inputs_rounded, True
    try:
        yield
    finally:
        _inputs_rounded = old_value


def describe_rounding() -> str | None:
    """Describe who has rounded inputs in this process so far, for a manifest; None if none were rounded."""
    if not _LIBRARY_ROUNDS:
        return None
    shapes, by_library = len(_LIBRARY_ROUNDS), sum(_LIBRARY_ROUNDS.values())
    if by_library in (0, shapes):
        return "oneDNN" if by_library else "before float32 products"
    return f"oneDNN in {by_library} of {shapes} shapes of products, before float32 products in the others"


@functools.cache
def _is_mkl_processor() -> bool:
    """Whether the processor is of MKL's maker, so that MKL takes its widest vectors; False where nothing says so."""
    info = Path("/proc/cpuinfo")
    return info.is_file() and "GenuineIntel" in info.read_text(encoding="utf-8", errors="replace")


def linear(x: torch.Tensor, weight_OI: torch.Tensor, bias_O: torch.Tensor | None = None) -> torch.Tensor:
    """x W^T + bias over the last dimension, with gradients: `torch.nn.functional.linear`, made faster on a CPU."""
    rounded = _rounds_inputs(x, weight_OI)
    if not rounded and not _uses_onednn(x, weight_OI):
        return functional.linear(x, weight_OI, bias_O)
    x_XI = x.reshape(-1, x.shape[-1])
    if torch.is_grad_enabled():
        product: torch.Tensor = _Linear.apply(x_XI, weight_OI, bias_O, rounded)
    else:
        product = _multiply(x_XI, weight_OI, bias_O, rounded)
    return product.unflatten(0, x.shape[:-1]) if x.dim() > 1 else product[0]


def product(x_XI: torch.Tensor, y_OI: torch.Tensor) -> torch.Tensor:
    """x y^T (X, O) for matrices of any strides, without gradients."""
    return _product(x_XI, y_OI, _rounds_inputs(x_XI, y_OI))


def _product(x_XI: torch.Tensor, y_OI: torch.Tensor, rounded: bool) -> torch.Tensor:
    if rounded or _uses_onednn(x_XI, y_OI):
        return _multiply(x_XI, y_OI, None, rounded)
    return x_XI @ y_OI.T


def _rounds_inputs(x: torch.Tensor, y_OI: torch.Tensor) -> bool:
    return _inputs_rounded and x.device.type == "cpu" and x.dtype == y_OI.dtype == torch.float32


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


def _multiply(x_XI: torch.Tensor, y_OI: torch.Tensor, bias_O: torch.Tensor | None, rounded: bool) -> torch.Tensor:
    x_XI, y_OI = (value if _has_own_places(value) else value.contiguous() for value in (x_XI, y_OI))
    bias_O = None if bias_O is None else bias_O.contiguous()
    if torch.compiler.is_compiling():
        # What compiles it leaves out a rounding that is followed by a widening.
        multiply = torch.ops.plumbline.rounded_product if rounded else torch.ops.plumbline.product
        return multiply(x_XI, y_OI, bias_O)
    if rounded:
        return _multiply_rounded(x_XI, y_OI, bias_O)
    return _multiply_by_onednn(x_XI, y_OI, bias_O)


def _has_own_places(value: torch.Tensor) -> bool:
    """Whether each number of a matrix has its own place in memory, which oneDNN wants: a gradient may be one number."""
    (inner, size), (outer, _) = sorted(zip(value.stride(), value.shape, strict=True))
    return inner > 0 and outer >= inner * size


def _multiply_by_onednn(x_XI: torch.Tensor, y_OI: torch.Tensor, bias_O: torch.Tensor | None) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x_XI, y_OI, bias_O, "none", [], "")


def _multiply_rounded(x_XI: torch.Tensor, y_OI: torch.Tensor, bias_O: torch.Tensor | None) -> torch.Tensor:
    """The product of inputs rounded to bfloat16, its sums in float32."""
    if _library_rounds(x_XI, y_OI):
        return _let_library_round(x_XI, y_OI, bias_O)
    x_XI, y_OI = (value.bfloat16().float() for value in (x_XI, y_OI))
    if _uses_onednn(x_XI, y_OI):
        return _multiply_by_onednn(x_XI, y_OI, bias_O)
    return functional.linear(x_XI, y_OI, bias_O)


def _let_library_round(x_XI: torch.Tensor, y_OI: torch.Tensor, bias_O: torch.Tensor | None) -> torch.Tensor:
    """The product by oneDNN, which may take its inputs as bfloat16."""
    settings = torch.backends.mkldnn.matmul
    old_precision, settings.fp32_precision = settings.fp32_precision, "bf16"
    try:
        return _multiply_by_onednn(x_XI, y_OI, bias_O)
    finally:
        settings.fp32_precision = old_precision


@torch.no_grad()
def _library_rounds(x_XI: torch.Tensor, y_OI: torch.Tensor) -> bool:
    """Whether oneDNN rounds the inputs of products of such shapes and strides, by a product of other numbers."""
    if not _AVAILABLE:
        return False
    key = (x_XI.shape, x_XI.stride(), y_OI.shape, y_OI.stride(), torch.get_num_threads())
    if key not in _LIBRARY_ROUNDS:
        x_probe, y_probe = (torch.empty_like(value).copy_(probe_numbers(*value.shape)) for value in (x_XI, y_OI))
        x_rounded, y_rounded = (value.bfloat16().double() for value in (x_probe[:_COMPARED], y_probe))
        error = (_let_library_round(x_probe, y_probe, None)[:_COMPARED] - x_rounded @ y_rounded.T).abs()
        added = x_rounded.abs() @ y_rounded.abs().T
        _LIBRARY_ROUNDS[key] = bool((error <= _LARGEST_ERROR * added).all())
    return _LIBRARY_ROUNDS[key]


def probe_numbers(rows: int, columns: int) -> torch.Tensor:
    """Float64 numbers from -0.5 to 0.5 that look random, to try products with: no random generator moves on."""
    place = torch.arange(rows * columns, dtype=torch.float64)
    return ((place * place + 12345) % 65521 * (place % 251) % 4093 / 4093 - 0.5).view(rows, columns)


# Without gradients of its own: `_Linear` has them, and gives them to a graph as well.
# Copies of this file stand beside exported models, of which a process may load several: the first one defines it.
_LIBRARY = torch.library.Library("plumbline", "FRAGMENT")
if not hasattr(torch.ops.plumbline, "product"):
    for _name, _kernel in (("product", _multiply_by_onednn), ("rounded_product", _multiply_rounded)):
        _LIBRARY.define(f"{_name}(Tensor x, Tensor y, Tensor? bias) -> Tensor")
        _LIBRARY.impl(_name, _kernel, "CPU")
        # Not as torch registers one, which looks the caller up among all modules: a tenth of a second of each process.
        _LIBRARY.impl(_name, lambda x_XI, y_OI, bias_O: x_XI.new_empty(len(x_XI), len(y_OI)), "Meta")


class _Linear(torch.autograd.Function):
    """y = x W^T + b:  dx = dy W,  dW = dy^T x,  db the sum of dy over rows."""

    @staticmethod
    def forward(
        ctx, x_XI: torch.Tensor, weight_OI: torch.Tensor, bias_O: torch.Tensor | None, rounded: bool
    ) -> torch.Tensor:
        ctx.save_for_backward(x_XI, weight_OI)
        ctx.rounded = rounded  # backward runs outside of the block of `rounded_inputs`
        return _multiply(x_XI, weight_OI, bias_O, rounded)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy_XO: torch.Tensor):
        x_XI, weight_OI = ctx.saved_tensors
        wants_x, wants_weight, wants_bias, _ = ctx.needs_input_grad
        return (
            _product(dy_XO, weight_OI.T, ctx.rounded) if wants_x else None,
            _weight_gradient(dy_XO, x_XI, ctx.rounded) if wants_weight else None,
            dy_XO.sum(0) if wants_bias else None,
            None,
        )


def weight_gradient(dy_XO: torch.Tensor, x_XI: torch.Tensor) -> torch.Tensor:
    """The gradient dy^T x (O, I) of a linear map's weight, with the longer side as columns, which is faster."""
    return _weight_gradient(dy_XO, x_XI, _rounds_inputs(dy_XO, x_XI))


def _weight_gradient(dy_XO: torch.Tensor, x_XI: torch.Tensor, rounded: bool) -> torch.Tensor:
    if dy_XO.shape[1] > x_XI.shape[1]:
        return _product(x_XI.T, dy_XO.T, rounded).T
    return _product(dy_XO.T, x_XI.T, rounded)
