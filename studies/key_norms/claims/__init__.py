"""Registers the key_norms study's claims: which id is measured how."""

from plumbline.results.claims.claim_registry import ClaimChecks

from . import sizes_and_definitions, trained_models
from .claim_evidence import Evidence

CHECKS = ClaimChecks().merge(part.CHECKS for part in (sizes_and_definitions, trained_models))

__all__ = ["CHECKS", "Evidence"]
