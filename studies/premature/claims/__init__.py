"""Registers the premature study's claims: which id is measured how."""

from plumbline.results.claims.claim_registry import ClaimChecks

from . import architectures, control_experiments, downstream_tasks, losses, mechanism, release, theorems
from .claim_evidence import Evidence

PARTS = (losses, downstream_tasks, mechanism, architectures, control_experiments, release, theorems)
CHECKS = ClaimChecks().merge(part.CHECKS for part in PARTS)

__all__ = ["CHECKS", "Evidence"]
