"""Registers the query_free study's claims: which id is measured how."""

from plumbline.results.claims.claim_registry import ClaimChecks

from . import basis_transfer, decoder_sizes, learning_rates, losses, theorems
from .claim_evidence import Evidence

PARTS = (losses, learning_rates, decoder_sizes, theorems, basis_transfer)
CHECKS = ClaimChecks().merge(part.CHECKS for part in PARTS)

__all__ = ["CHECKS", "Evidence"]
