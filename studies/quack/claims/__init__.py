"""Registers the quack study's claims: which id is measured how."""

from plumbline.results.claims.claim_registry import ClaimChecks

from . import lemma1, sizes_and_algorithm, step_times, trained_models
from .claim_evidence import Evidence

CHECKS = ClaimChecks().merge(part.CHECKS for part in (sizes_and_algorithm, lemma1, step_times, trained_models))

__all__ = ["CHECKS", "Evidence"]
