"""Holds what a screen asks for and gets: a run by its levels and seed, its value, and the next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.screen.screen_design import ScreenDesign

#: What a run is for: the design, the chosen set and the baseline with fresh seeds, the set without one of its levels.
DESIGN, FRESH, LEFT_OUT = "design", "fresh", "left out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A run to be made: the level of every factor, its seed, and what it is for (`DESIGN`, `FRESH`, `LEFT_OUT`)."""

    settings: Mapping[str, str]
    seed: int
    part: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells a run from all others."""
        return self.part, self.seed, tuple(sorted(self.settings.items()))


@dataclass(frozen=True, slots=True)
class ScreenRun:
    """What a request gave; a run without a value crashed or diverged."""

    request: Request
    run: ArmRun


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What is to be run next, all of it before the next step.

    Attributes:
        design: as it is now: levels that crash are gone from rows that are still to be made, and rows were added.
        notes: what happened since the design was made.
    """

    requests: tuple[Request, ...]
    design: ScreenDesign
    notes: tuple[str, ...]
