"""Implements no intervention, by name: control arms run through the same code."""

from __future__ import annotations

from plumbline.specs.components import component
from plumbline.train.interventions._base import Intervention


@component
class NoIntervention(Intervention):
    """Changes nothing at any of the points."""

    def needs_loss(self, step: int) -> bool:
        """Return False: nothing is read or changed."""
        return False
