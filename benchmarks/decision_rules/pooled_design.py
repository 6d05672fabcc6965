"""A design whose sigma takes past runs along: no rule of Plumbline's, and what its boundary was first checked with."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.stats.sequential import SequentialDesign


@dataclass(frozen=True, kw_only=True)
class PooledDesign(SequentialDesign):
    """A design with so many past degrees of freedom."""

    past_df: float = 0.0

    def df(self, look: int) -> float:
        return self.past_df + super().df(look)
