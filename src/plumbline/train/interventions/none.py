"""No intervention, by name."""

from __future__ import annotations

from plumbline.train.interventions._base import Null


def build() -> Null:
    """Takes no options."""
    return Null()
