"""Defines the check of a paper's theorem on random weights: its residual, and that without each of its premises.

The statements are equalities of outputs; what is measured is |found - stated| / |stated| (Frobenius), the largest over
the shapes and seeds that were tried, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A relative residual up to which float64 is said to agree.
ROUNDING = 1e-9

#: A relative residual from which a statement is said to fail: far from rounding, and from what drifts up by bad luck.
FAILURE = 1e-4


@dataclass(frozen=True, kw_only=True, slots=True)
class ResidualWithoutPremise:
    """A premise that was taken away, and the smallest residual over the shapes and seeds that were tried without it."""

    premise: str
    residual: float

    @property
    def fails(self) -> bool:
        """Whether the statement visibly fails without this premise; a residual of NaN does not count as failing."""
        return self.residual >= FAILURE


@dataclass(frozen=True, kw_only=True, slots=True)
class TheoremCheck:
    """The check of one theorem: one row of the table of theorems.

    Attributes:
        id: a short name, `thm_4_2_tied`.
        statement: what is equal to what, in a line.
        source: where the paper says it, "Thm 4.2, App 8.6".
        section: the section by which Table 1 names its rows ("4.3"); empty if it has none.
        residual: largest relative residual with all premises kept.
        broken: the residual without each single premise; may be empty if there is none to break.
        tried: shapes and seeds, in words ("12 shapes x 3 seeds, float64").
        tolerance: residual up to which it holds.
    """

    id: str
    statement: str
    source: str
    section: str
    residual: float
    broken: tuple[ResidualWithoutPremise, ...]
    tried: str
    tolerance: float = ROUNDING

    @property
    def holds(self) -> bool:
        """Whether the statement holds with its premises and fails without each; with a residual of NaN it does not."""
        return self.residual <= self.tolerance and all(case.fails for case in self.broken)
