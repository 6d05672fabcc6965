"""The peak, held to the end."""

from __future__ import annotations

from plumbline.specs.components import component


@component
def constant(progress: float) -> float:
    """Share of the peak: all of it."""
    return 1.0
