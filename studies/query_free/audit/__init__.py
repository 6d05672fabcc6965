"""Recomputes what of query_free's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows

from . import definitions, table2, theory


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    for part in (table2, theory, definitions):
        part.audit(ledger)
