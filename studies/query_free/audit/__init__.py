"""Recomputes what of query_free's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.rows import AuditRows

from . import runs, theory


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    for part in (runs, theory):
        part.audit(ledger)
