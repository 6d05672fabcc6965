"""Registers the quack study's claims: which id is measured how."""

from plumbline.results.claims.registry import ClaimChecks

from . import design, theorem, timed, trained
from .evidence import Evidence

CHECKS = ClaimChecks().merged(part.CHECKS for part in (design, theorem, timed, trained))

__all__ = ["CHECKS", "Evidence"]
