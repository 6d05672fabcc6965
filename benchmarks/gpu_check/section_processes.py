"""What the processes of the check share."""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
from typing import Any

#: PR_SET_PDEATHSIG of Linux's prctl.h.
_WHEN_THE_PARENT_DIES = 1


def format_error(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def free() -> None:
    """Give back what the last row has left on the device."""
    gc.collect()
    # What is there after the first row is what was imported: half a second to look through, and nothing of it goes.
    if not gc.get_freeze_count():
        gc.freeze()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


#: Opened here: a child between fork and exec opens no library.
_C = ctypes.CDLL(None)


def end_with_the_call() -> None:
    """Have the kernel send SIGTERM when the call that started this process dies: the state is the next call's then."""
    _C.prctl(_WHEN_THE_PARENT_DIES, signal.SIGTERM)
