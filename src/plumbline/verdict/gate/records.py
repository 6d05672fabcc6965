"""Holds a record as it was read: what it prints, the runs that its logs hold, and those of them that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.core.files import shown
from plumbline.verdict.gate.training_log import LoggedRun, TrainingLog


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as somebody printed it."""

    value: float
    decimals: int

    def fits(self, computed: float) -> bool:
        """Whether a computed number rounds to it, or lies on the edge between the two numbers next to it."""
        return abs(computed - self.value) <= self.edge

    @property
    def edge(self) -> float:
        """How far a number that rounds to it may lie from it."""
        return 0.5 * 10.0**-self.decimals * (1 + 1e-6) + 1e-12

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"


@dataclass(frozen=True, slots=True)
class RunValue:
    """A run that counts: its value of the metric, the log it is from, and the label of the value's line."""

    run: LoggedRun
    value: float
    label: str = ""


@dataclass(kw_only=True)
class Record:
    """A record of a board.

    Attributes:
        name: as the board lists it; order: its place among the records, the oldest first.
        headline: what is claimed; step: the step at which it is claimed, where steps count.
        printed_n: the number of runs that are claimed.
        by_seed: printed values by seed.
        left_out: values of runs that were made and are not counted, as the record itself says.
        place: where its logs are; linked: the log that it names.
        logs, unread: what was read of it, and what could not be, with why.
        marked: whether it is one of the board's progress.
    """

    name: str
    order: int
    place: Path | None = None
    linked: Path | None = None
    headline: Printed | None = None
    step: int | None = None
    printed_n: int | None = None
    by_seed: Mapping[str, Printed] = field(default_factory=dict)
    left_out: Mapping[str, float] = field(default_factory=dict)
    date: str = ""
    description: str = ""
    marked: bool = True
    logs: list[TrainingLog] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def file(self, path: Path, root: Path) -> str:
        """A log's name below the board's folder."""
        return shown(path, root)


@dataclass(kw_only=True)
class CountedRuns:
    """The runs that count, where they are from, and what is wrong about them.

    Attributes:
        copies: how many files, or parts of files, hold a run that another one holds.
        copied_seeds: of the copies that say another seed than their original, the original by that seed.
        instead: what a headline that is not the runs' mean is, where that is known.
    """

    values: tuple[RunValue, ...] = ()
    origin: str = ""
    copies: int = 0
    copied_seeds: dict[str, LoggedRun] = field(default_factory=dict)
    instead: str = ""
    faults: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
