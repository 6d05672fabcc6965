"""Implements half a cosine from the peak down to the floor."""

from __future__ import annotations

import math

from plumbline.specs.components import component


@component
def cosine(progress: float, *, floor: float = 0.1) -> float:
    """Give the share of the peak learning rate at `progress` (0 to 1); at the end it is `floor`."""
    return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))
