"""Lists the sections in the order of their worth, with the seconds that each has.

A call has nine and a half minutes, and a warm one after it two and a half; time that a section leaves goes to the next
one that needs it. A section's module has `rows(call)`: key -> a function without arguments that measures the row and
returns its values, each a column of the page.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionCall:
    """A GPU is measured at paper size; a processor rehearses at toy sizes, and compiles nothing: it would take minutes.

    Attributes:
        device: cuda or cpu.
        until: the second of the clock (time.time) at which the section is to have ended.
        ahead: whether only what rows compile counts, since they are measured later.
    """

    device: str
    until: float = 1e12
    ahead: bool = False

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


Rows = dict[str, Callable[[], dict[str, Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A section.

    Attributes:
        seconds: that it has.
        module: with its rows, which are asked for with these `arguments`.
        processes: that carry out its rows once, side by side, before they are measured, on a GPU: what they compile is
            then there.
    """

    seconds: float
    module: str
    processes: int = 0
    arguments: tuple[Any, ...] = ()

    def rows(self, call: SectionCall) -> Rows:
        """The rows by key."""
        return importlib.import_module(self.module).rows(call, *self.arguments)


#: Of a call; the other blocks are a second one's.
MINUTES = 9.5
SECTIONS = {
    "ceilings": Section(seconds=20, module=f"{__name__}.ceilings"),
    "accuracy": Section(seconds=60, module=f"{__name__}.accuracy", processes=16),
    "baseline_steps": Section(seconds=120, module=f"{__name__}.training_steps"),
    "method_steps": Section(seconds=200, module=f"{__name__}.method_steps", processes=8),
    "blocks": Section(
        seconds=90, module=f"{__name__}.kernel_blocks", processes=16,
        arguments=({"name": "softpick"}, {"name": "selective"}),
    ),
    "other_blocks": Section(
        seconds=120, module=f"{__name__}.kernel_blocks", processes=16,
        arguments=({"name": "softmax_cap"}, {"name": "sigmoid"}, {"name": "softpick", "variant": "original"}),
    ),
}  # fmt: skip
