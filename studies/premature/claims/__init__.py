"""Registers the premature study's claims: which id is measured how."""

from plumbline.results.claims.registry import ClaimChecks

from . import (
    architectures,
    controls,
    downstream,
    losses,
    mechanism,
    release,
    theorems,
)
from .evidence import Evidence

PARTS = (losses, downstream, mechanism, architectures, controls, release, theorems)
CHECKS = ClaimChecks().merged(part.CHECKS for part in PARTS)

__all__ = ["CHECKS", "Evidence"]
