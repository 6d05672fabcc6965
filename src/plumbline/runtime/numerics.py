"""Sets how numbers are computed in training, and wherever a trained model has to give the same numbers again."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.utils.deterministic

from plumbline.model.float32_widening import wide_attention
from plumbline.runtime.allocator import keep_memory
from plumbline.specs.spec import Precision


def numerics(device: torch.device) -> None:
    """Set this process's numerics: deterministic algorithms on a CPU, and no TF32 on any device."""
    if device.type == "cpu":
        keep_memory()
    # The same as use_deterministic_algorithms, without its import of torch.compile's machinery.
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else "default")
    # Else each new tensor is filled with NaN before it is written: 1 to 2 % of a step. Tests see that none is read so.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """The context that a forward call at `precision` runs in.

    - float32: everything in float32.
    - bfloat16: autocast; weights, the residual stream, norms, softmax and loss stay in float32.
    - bfloat16_products: the same, with attention in float32 as well. On a processor whose instructions have bfloat16
      products these are several times as fast as float32's, and attention's in bfloat16 are slower than in float32.
    """
    stack = contextlib.ExitStack()
    if precision != "float32":
        stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
    if precision == "bfloat16_products":
        stack.enter_context(wide_attention())
    return stack
