"""The peak, held to the end; the floor plays no part."""

from __future__ import annotations


def decay(progress: float, floor: float) -> float:
    """Share of the peak: all of it."""
    return 1.0
