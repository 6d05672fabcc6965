"""Decides after each run of a candidate whether it is kept, discarded or run again, at one level over all looks."""

from plumbline.stats.sequential.boundary import Boundary, boundary
from plumbline.stats.sequential.design import Plan, SequentialDesign
from plumbline.stats.sequential.look import Look, statistic
from plumbline.stats.sequential.operating_characteristics import compute_characteristics

__all__ = [
    "Boundary",
    "Look",
    "Plan",
    "SequentialDesign",
    "boundary",
    "compute_characteristics",
    "statistic",
]
