"""Describes a call of the check to its sections: the device, the shapes that go with it, and until when."""

from __future__ import annotations

import ctypes
import signal
from dataclasses import dataclass

REHEARSAL = "rehearsal on a processor, not a measurement"
#: PR_SET_PDEATHSIG of Linux's prctl.h; opened here, since a child between fork and exec opens no library.
_WHEN_THE_PARENT_DIES, _C = 1, ctypes.CDLL(None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionCall:
    """A GPU is measured at paper size; a processor rehearses at toy sizes, and compiles nothing: it would take minutes.

    Attributes:
        device: cuda or cpu.
        until: the second of the clock (time.time) at which the section is to have ended.
    """

    device: str
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
