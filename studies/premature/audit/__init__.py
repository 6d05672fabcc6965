"""Recomputes what of the premature study's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows

from . import attribution, control_experiments, main_results, theory, words_and_counts


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    for part in (main_results, attribution, control_experiments, theory, words_and_counts):
        part.audit(ledger)
