"""Registers the transfer study's claims: which id is measured how."""

from plumbline.results.claims.registry import ClaimChecks

from . import (
    attention,
    base_scale,
    large_scale,
    losses_and_tasks,
    modules,
    structure,
)
from .evidence import Evidence

CHECKS = ClaimChecks().merged(
    part.CHECKS for part in (base_scale, modules, large_scale, losses_and_tasks, attention, structure)
)

__all__ = ["CHECKS", "Evidence"]
