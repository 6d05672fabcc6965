"""Makes the design of a screen: which levels each run has, so that every change is judged by all runs.

A factor is what can be changed; its first level is the baseline's. An idea is a factor of two levels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

#: The levels of an idea.
WITHOUT, WITH = "without", "with"

#: A factor's name and one of its levels.
Level = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Factor:
    """What can be changed.

    Attributes:
        name: as a page has it.
        levels: two or more; the first is the baseline's.
    """

    name: str
    levels: tuple[str, ...] = (WITHOUT, WITH)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenDesign:
    """The runs of a screen.

    Attributes:
        forbidden: pairs of levels that are never in one run.
        rows: a run each, in the order in which they are made: the level of every factor, in the order of `factors`.
        construction: how the rows were chosen, in words.
        looks: numbers of rows after which effects are looked at; the last is all.
    """

    factors: tuple[Factor, ...]
    forbidden: tuple[tuple[Level, Level], ...]
    rows: tuple[tuple[str, ...], ...]
    construction: str
    looks: tuple[int, ...]


def count_parameters(factors: Sequence[Factor]) -> int:
    """Count what a design estimates: the baseline's mean, and each level but a factor's first."""
    return 1 + sum(len(factor.levels) - 1 for factor in factors)


def make_design(
    factors: Sequence[Factor], *, forbidden: Sequence[tuple[Level, Level]] = (), runs: int, seed: int
) -> ScreenDesign:
    """Make a design of any number of runs that is not below `count_parameters`."""
    raise NotImplementedError


def augment_design(design: ScreenDesign, *, dropped: Collection[Level] = (), runs: int, seed: int) -> ScreenDesign:
    """Add so many rows; those that exist stay, and no new row has a dropped level."""
    raise NotImplementedError


def predict_errors(design: ScreenDesign) -> Mapping[Level, float]:
    """Compute the standard error of each effect, in sigma of a run."""
    raise NotImplementedError


def describe_aliases(design: ScreenDesign) -> list[str]:
    """State which two-factor interactions lean on which effects."""
    raise NotImplementedError
