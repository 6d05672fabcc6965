"""Recomputes what of the premature study's printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.rows import Ledger

from . import attribution, controls, main_results, theory


def audit(ledger: Ledger) -> None:
    """All rows of the paper."""
    for part in (main_results, attribution, controls, theory):
        part.audit(ledger)
