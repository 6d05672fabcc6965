"""Sets how numbers are computed in training, and wherever a trained model has to give the same numbers again."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.utils.deterministic

from plumbline.core import numeric_environment
from plumbline.core.errors import PlumblineError
from plumbline.model.allocator import keep_memory
from plumbline.model.cpu_matmul import probe_numbers, product, rounded_inputs
from plumbline.model.float32_widening import wide_attention
from plumbline.specs.spec import Precision

#: The most that a number of the float32 products that are probed may be off, as a share of the sum of what is added
#: without signs. Float32 is off by 7e-8, TF32 and float16 by 8e-5, bfloat16 by 7e-4.
_LARGEST_ERROR = 5e-6
#: Rows and columns of the product that is probed, enough for the library that serves large ones, and its rows that are
#: compared.
_SIDE, _COMPARED = 256, 8


def numerics(device: torch.device) -> None:
    """Set this process's numerics: deterministic algorithms on a CPU, and no TF32 on any device.

    Raises:
        PlumblineError: float32 products come out with fewer bits (`require_float32`).
    """
    set_numerics(device)
    require_float32(device)


def set_numerics(device: torch.device) -> None:
    """Set this process's numerics without a look at what products come out as, which takes a device that computes."""
    if device.type == "cpu":
        keep_memory()
    # The same as use_deterministic_algorithms, without its import of torch.compile's machinery.
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else "default")
    # Else each new tensor is filled with NaN before it is written: 1 to 2 % of a step. Tests see that none is read so.
    torch.utils.deterministic.fill_uninitialized_memory = False
    _turn_tf32_off()


def _turn_tf32_off() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def require_float32(device: torch.device) -> None:
    """Turn TF32 off, and refuse a process whose float32 products come out with fewer bits.

    That is one whose environment narrows them (`plumbline.core.numeric_environment`), or in which a product that is
    probed is off by more than float32's rounding, whatever the reason.

    Raises:
        PlumblineError: naming the variable, or the error of the product.
    """
    numeric_environment.require_wide_products()
    _turn_tf32_off()
    error = float32_error(device)
    if not error <= _LARGEST_ERROR:
        raise PlumblineError(
            f"float32 products on {device} are off by {error:.1g} (float32 by 7e-8, TF32 by 8e-5, bfloat16 by 7e-4): a "
            "setting of torch, of a library below it or of the driver narrows them. Leave out torch.backends' "
            "fp32_precision, torch.set_float32_matmul_precision and such variables of the environment, and start again"
        )


@torch.no_grad()
def float32_error(device: torch.device) -> float:
    """Measure the largest error of two float32 products, of those that models take, against float64.

    As a share of the sum of what is added, without signs; NaN where a product holds NaN. Takes a millisecond or two.
    """
    x_II, y_OI = probe_numbers(2 * _SIDE, _SIDE).to(torch.float32).view(2, _SIDE, _SIDE)
    exact_XO = x_II[:_COMPARED].double() @ y_OI.double().T
    added_XO = x_II[:_COMPARED].abs().double() @ y_OI.abs().double().T
    x_II, y_OI = x_II.to(device), y_OI.to(device)
    products = [multiply(x_II, y_OI)[:_COMPARED].cpu().double() for multiply in (product, _multiply_by_torch)]
    return max(((result - exact_XO).abs() / added_XO).max().item() for result in products)


def _multiply_by_torch(x_XI: torch.Tensor, y_OI: torch.Tensor) -> torch.Tensor:
    return x_XI @ y_OI.T


def require_precision(precision: Precision, device: torch.device) -> None:
    """Refuse a precision that a device does not compute at.

    Raises:
        PlumblineError: naming both, and what to choose instead.
    """
    if precision == "bfloat16_inputs" and device.type != "cpu":
        raise PlumblineError(
            f"train.precision 'bfloat16_inputs' is computed on processors alone, and this is {device}: its library has "
            "no products of float32 numbers rounded to bfloat16 (TF32 keeps three bits more). Start with --device cpu, "
            "or choose 'bfloat16' or 'float32' for train.precision in the study's YAML"
        )


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """The context that a forward call at `precision` runs in.

    - float32: everything in float32.
    - bfloat16: autocast; weights, the residual stream, norms, softmax and loss stay in float32.
    - bfloat16_products: the same, with attention in float32 as well. On a processor whose instructions have bfloat16
      products these are several times as fast as float32's, and attention's in bfloat16 are slower than in float32.
    - bfloat16_inputs: everything in float32 but the inputs of linear maps' and the head's products, gradients'
      included, which are rounded to bfloat16 (`cpu_matmul.rounded_inputs`); on a processor alone.

    Raises:
        PlumblineError: the device does not compute at this precision (`require_precision`).
    """
    require_precision(precision, device)
    stack = contextlib.ExitStack()
    if precision == "bfloat16_inputs":
        stack.enter_context(rounded_inputs())
    elif precision != "float32":
        stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
    if precision == "bfloat16_products":
        stack.enter_context(wide_attention())
    return stack
