"""Lists the sections in the order of their worth, with the seconds that each has.

A loan of a device is fifteen minutes in all, its start and the transfers included: one call of nine and a half minutes,
and a warm one of two and a half. Time that a section leaves goes to the next one that needs it.

A section's module has `rows(call)`: key -> a function without arguments that measures the row and returns its values,
each a column of the page. Rows with a `group` are compared by their `ms` with the first one of it. A module may have
`ahead_rows` as well, which are carried out ahead in place of its rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

REHEARSAL = "rehearsal on a processor, not a measurement"


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


Rows = dict[str, Callable[[], dict[str, Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A section.

    Attributes:
        seconds: that it has.
        module: with its rows, which are asked for with `options`.
        processes: that carry out its rows once, side by side, before they are measured, on a GPU: what they compile is
            then there.
        least: seconds that have to be left for a row to be begun.
    """

    title: str
    seconds: float
    module: str
    processes: int = 0
    least: float = 0.0
    options: Mapping[str, Any] | None = None

    def rows(self, call: SectionCall, *, ahead: bool = False) -> Rows:
        """The rows, or what is carried out ahead of them."""
        module = importlib.import_module(self.module)
        rows = getattr(module, "ahead_rows", module.rows) if ahead else module.rows
        return rows(call, **(self.options or {}))


def _blocks(mixers: str, seconds: float, *slots: Mapping[str, Any]) -> Section:
    title = f"Blocks of the kernels of {mixers}"
    module, options = f"{__name__}.kernel_blocks", {"slots": slots}
    return Section(title=title, seconds=seconds, module=module, processes=16, options=options)


#: Of a call; the other blocks are a second one's.
MINUTES = 9.5
SECTIONS = {
    "ceilings": Section(
        title="Ceilings of the device, and attention's back ends", seconds=20, module=f"{__name__}.ceilings"
    ),
    "accuracy": Section(
        title="Mixers and back ends against float64", seconds=60, module=f"{__name__}.accuracy", processes=16
    ),
    "baseline_steps": Section(
        title="The baseline's whole step, eager and compiled", seconds=120, module=f"{__name__}.training_steps"
    ),
    "method_steps": Section(
        title="Methods by compiled step of one micro-batch", seconds=200, module=f"{__name__}.method_steps",
        processes=8, least=15,
    ),
    "blocks": _blocks("softpick and selective attention", 90, {"name": "softpick"}, {"name": "selective"}),
    "other_blocks": _blocks(
        "other mixers", 120, {"name": "softmax_cap"}, {"name": "sigmoid"}, {"name": "softpick", "variant": "original"}
    ),
}  # fmt: skip
