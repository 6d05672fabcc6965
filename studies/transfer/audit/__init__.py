"""Recomputes what of the transfer study's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows

from . import (
    base_scale,
    cited_works,
    configuration,
    counts_by_category,
    divergences_and_losses,
    large_scale,
    parameters_and_flops,
    tests_of_significance,
)


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    for part in (
        base_scale,
        counts_by_category,
        large_scale,
        parameters_and_flops,
        configuration,
        divergences_and_losses,
        cited_works,
        tests_of_significance,
    ):
        part.audit(ledger)
