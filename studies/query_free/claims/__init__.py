"""Registers the query_free study's claims: which id is measured how."""

from plumbline.results.claims.registry import ClaimChecks

from . import losses, rates, sizes, theorems, transfer
from .evidence import Evidence

PARTS = (losses, rates, sizes, theorems, transfer)
CHECKS = ClaimChecks().merged(part.CHECKS for part in PARTS)

__all__ = ["CHECKS", "Evidence"]
