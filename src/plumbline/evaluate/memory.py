"""What a process does with memory that it let go of."""

from __future__ import annotations

import ctypes

#: Parameters of glibc's `mallopt`.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: The largest that glibc takes for the second.
_LARGEST = 32 * 2**20


def keep() -> None:
    """Keep freed memory for the next tensor, where the C library is glibc; elsewhere nothing.

    It otherwise goes back to the system and comes again page by page, zeroed: four tenths of a pass of a small model
    on a CPU. The most that the process holds stays what it was.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
