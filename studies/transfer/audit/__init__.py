"""Recomputes what of the transfer study's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.rows import AuditRows

from . import (
    base_scale,
    compute,
    configuration,
    diagnostics,
    scales,
    taxonomy,
)


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    for part in (base_scale, taxonomy, scales, compute, configuration, diagnostics):
        part.audit(ledger)
