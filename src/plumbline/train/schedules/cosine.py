"""Half a cosine from the peak down to the floor."""

from __future__ import annotations

import math


def decay(progress: float, floor: float) -> float:
    """Share of the peak at `progress` (0 at the end of the warm-up, 1 at the last step)."""
    return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))
