"""Registers the transfer study's claims: which id is measured how."""

from plumbline.results.claims.claim_registry import ClaimChecks

from . import attention_weights, base_scale, kinds_of_methods, large_scale, losses_and_tasks, sizes_and_definitions
from .claim_evidence import Evidence

CHECKS = ClaimChecks().merge(
    part.CHECKS
    for part in (base_scale, kinds_of_methods, large_scale, losses_and_tasks, attention_weights, sizes_and_definitions)
)

__all__ = ["CHECKS", "Evidence"]
