"""Implements a constant schedule: the peak, held to the end."""

from __future__ import annotations

from plumbline.specs.components import component


@component
def constant(progress: float) -> float:
    """Give the share of the peak learning rate: all of it."""
    return 1.0
