"""Sets allocators: on a CPU the C library's keeps what tensors give back, on a GPU torch's grows its segments."""

from __future__ import annotations

import ctypes
import os

# Parameters of glibc's `mallopt`, as malloc.h numbers them.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3

#: So that a GPU's memory is not lost to fragments between tensors of different sizes.
GPU_ALLOCATOR = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
#: Where a user sets torch's allocator.
_CONFIGURED = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def keep_memory() -> None:
    """Have the C library keep what is freed, up to two gigabytes, for the next tensor.

    It otherwise hands every large tensor back to the system and gets the next one page by page, zeroed: a fifth of a
    training step of a small model, and four tenths of a pass without gradients. The peak memory of the process does not
    change. This is for glibc alone; elsewhere, or where the environment configures an allocator, nothing is done.
    """
    if any(name.startswith(("MALLOC_", "LD_PRELOAD", "GLIBC_TUNABLES")) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 32 * 2**20)  # the most that it takes
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_TOP_PAD, 64 * 2**20)


def grow_segments() -> None:
    """Have torch's allocator of a GPU grow its segments, in this process and those that it starts.

    It reads the variable at its first use: this comes before anything is asked of CUDA. Where the environment
    configures that allocator, nothing is done.
    """
    if not any(name in os.environ for name in _CONFIGURED):
        os.environ |= GPU_ALLOCATOR
