"""Holds what a paper prints of runs that nobody else has: mean, standard deviation and number, with its digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsSummary:
    """Mean and standard deviation (n - 1 below the line) of n runs, as printed.

    Attributes:
        mean_rounding, std_rounding: half a unit of the last printed digit: the true number is this near.
    """

    mean: float
    std: float
    n: int
    mean_rounding: float = 0.0
    std_rounding: float = 0.0

    def ends(self) -> tuple[RunsSummary, RunsSummary]:
        """Return it with the smallest and the largest standard deviation that would be printed so."""
        low = max(0.0, self.std - self.std_rounding)
        return replace(self, std=low), replace(self, std=self.std + self.std_rounding)

    def divided_by_n(self) -> RunsSummary:
        """Return what it is if the printed standard deviation has n below the line, as that of a population has."""
        return replace(self, std=self.std * math.sqrt(self.n / (self.n - 1)))


#: Method -> what is printed of its runs.
Summaries = Mapping[str, RunsSummary]


def pooled(*sides: RunsSummary) -> tuple[float, float]:
    """Sigma of one run, pooled over the sides, and its degrees of freedom."""
    freedom = sum(side.n - 1 for side in sides)
    largest = max(side.std for side in sides) or 1.0  # so that 1e200 can be squared
    return largest * math.sqrt(sum((side.n - 1) * (side.std / largest) ** 2 for side in sides) / freedom), freedom
