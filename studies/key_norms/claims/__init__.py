"""Registers the key_norms study's claims: which id is measured how."""

from plumbline.results.claims.registry import ClaimChecks

from . import definitions, trained
from .evidence import Evidence

CHECKS = ClaimChecks().merged(part.CHECKS for part in (definitions, trained))

__all__ = ["CHECKS", "Evidence"]
