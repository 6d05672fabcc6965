"""What a call of the check is told: device, sizes, until when."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

REHEARSAL = "rehearsal on a processor, not a measurement"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckSizes:
    """Shapes of the sections.

    `preset` of the transfer study's base scale.
    `product`: rows of a square matrix product; `copied`: bytes of a copy.
    `case`: type, head width and length of the comparisons with float64.
    `tokens`: of an attention call that is timed.
    `sequences`: of a micro-batch; `accumulated`: micro-batches of the baseline's step.
    `repeats`: timed calls or steps after `warmup` ones that are not. `compiles`: whether torch.compile is measured too,
    which alone takes a processor minutes.
    """

    preset: str
    product: int
    copied: int
    case: tuple[str, int, int]
    tokens: int
    sequences: int
    accumulated: int
    repeats: int
    warmup: int
    compiles: bool


SIZES = {
    "paper": CheckSizes(
        preset="paper",
        product=8192,
        copied=4 * 2**30,
        case=("bfloat16", 64, 1111),
        tokens=16384,
        sequences=8,
        accumulated=8,
        repeats=8,
        warmup=3,
        compiles=True,
    ),
    "tiny": CheckSizes(
        preset="smoke",
        product=128,
        copied=2**20,
        case=("bfloat16", 16, 37),
        tokens=64,
        sequences=2,
        accumulated=2,
        repeats=2,
        warmup=1,
        compiles=False,
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionCall:
    """A call. `until`: the second of the clock (time.time) at which the section is to have ended; `beside`: the state's
    path without its suffix, with which the names of all files begin that a section leaves for those who read."""

    device: str
    sizes: str
    beside: str = "benchmarks/runs/gpu_check"
    until: float = float("inf")

    @property
    def rehearsal(self) -> str | None:
        """Why what is measured does not count as a measurement; None if it does."""
        if self.device == "cpu":
            return REHEARSAL
        return "rehearsal at toy sizes, not a measurement" if self.sizes == "tiny" else None

    @property
    def size(self) -> CheckSizes:
        """The shapes."""
        return SIZES[self.sizes]

    def ending(self, until: float) -> SectionCall:
        """The same for a section that is to end then."""
        return replace(self, until=until)

    def to_json(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SectionCall:
        """What `to_json` wrote."""
        content: dict[str, Any] = json.loads(text)
        return cls(**content)
