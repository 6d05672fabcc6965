"""What of the made-up paper's numbers follows from others."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows


def audit(ledger: AuditRows) -> None:
    """Its two rows: one holds, one does not."""
    prose, losses = ledger.prose, ledger.table("losses")
    ledger.check("times", "widths", "section 1", prose("times"), prose("wide_width") / prose("narrow_width"))
    difference = losses["narrow", "loss"] - losses["wide", "loss"]
    ledger.check("difference", "losses", "section 2", prose("difference"), difference)
