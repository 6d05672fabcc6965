"""Recomputes what of the premature study's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.rows import AuditRows

from . import attribution, controls, main_results, theory


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    for part in (main_results, attribution, controls, theory):
        part.audit(ledger)
