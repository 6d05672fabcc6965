"""How numbers are computed in training, and wherever a trained model is to give the same numbers again."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

import torch

from plumbline.model.precision import wide_attention
from plumbline.specs.spec import Precision

# Numbers of malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def numerics(device: torch.device) -> None:
    """Deterministic on a CPU; float32 products in float32 everywhere."""
    if device.type == "cpu":
        _keep_memory()
    # The same as use_deterministic_algorithms, without its import of torch.compile's machinery.
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else "default")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """What a forward call at `precision` runs under.

    - float32: everything.
    - bfloat16: autocast; weights, the stream, norms, softmax and loss stay in float32.
    - bfloat16_products: the same, with attention in float32 as well. On a processor whose instructions have bfloat16
      products these are several times as fast as float32's, and attention's in bfloat16 are slower than in float32.
    """
    stack = contextlib.ExitStack()
    if precision != "float32":
        stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
    if precision == "bfloat16_products":
        stack.enter_context(wide_attention())
    return stack


def _keep_memory() -> None:
    """Have the C library keep what is freed, up to a gigabyte, instead of handing every large tensor back to the system
    and getting it again page by page, which costs a training step on a processor a fifth of its time.

    Of glibc alone; elsewhere, or where the user has set the allocator up by its environment, nothing is done.
    """
    if any(name.startswith(("MALLOC_", "LD_PRELOAD", "GLIBC_TUNABLES")) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 32 * 2**20)  # the most that it takes
        mallopt(_TRIM_THRESHOLD, 2**30)
        mallopt(_TOP_PAD, 64 * 2**20)
