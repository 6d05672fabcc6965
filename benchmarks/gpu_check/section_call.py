"""Describes a call of the check to its sections: the device, the shapes that go with it, and until when."""

from __future__ import annotations

import ctypes
import platform
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

REHEARSAL = "rehearsal on a processor, not a measurement"
#: What travels to a machine without an index in addition to the repository's files (`bundle`, `bare_machine`).
CARRIED = Path("work/gpu-check")
WHEELS, PACKED = CARRIED / "wheels", CARRIED / "bundle.json"
#: Where there is to lie what an earlier call brought back.
BEFORE = CARRIED / "before"
#: The key_norms study's sequences of its paper size, of the corpus that mini reads.
PACKS = Path("work/mini/corpora/smollm_mix/packs/context2048")
#: What is made there and stays there; packages by the Python and the processor that they are for.
INSTALLED = Path(f"work/gpu-check-packages/{sys.implementation.cache_tag}-{platform.machine()}")
RUNS = Path("work/gpu-check-runs")
#: PR_SET_PDEATHSIG of Linux's prctl.h; opened here, since a child between fork and exec opens no library.
_WHEN_THE_PARENT_DIES, _C = 1, ctypes.CDLL(None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionCall:
    """A GPU is measured at paper size; a processor rehearses at toy sizes, and compiles nothing: it would take minutes.

    Attributes:
        device: cuda or cpu.
        beside: the state's path without its suffix, with which the names of all files begin that a section leaves.
        until: the second of the clock (time.time) at which the section is to have ended.
    """

    device: str
    beside: str = ""
    until: float = 1e12

    @property
    def rehearsal(self) -> bool:
        """Whether nothing is measured."""
        return self.device == "cpu"

    @property
    def preset(self) -> str:
        """Of the transfer study's base scale, at which sections measure."""
        return "smoke" if self.rehearsal else "paper"

    @property
    def micro_batch(self) -> int:
        """Sequences of a micro-batch; a whole step has as many micro-batches."""
        return 2 if self.rehearsal else 8


def end_with_the_call() -> None:
    """Have the kernel send SIGTERM when the process dies that started this one: the device is the next call's then."""
    _C.prctl(_WHEN_THE_PARENT_DIES, signal.SIGTERM)
