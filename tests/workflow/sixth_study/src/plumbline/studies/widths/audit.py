"""What of the made-up document's numbers follows from others."""

from __future__ import annotations

from plumbline.audit.rows import Ledger


def audit(ledger: Ledger) -> None:
    """Its two rows: one holds, one does not."""
    prose, cell = ledger.prose, ledger.cell
    widths = {"a": prose("wide_width"), "b": prose("narrow_width")}
    ledger.check("times", "widths", "section 1", "ratio", prose("times"), widths)
    losses = {"a": cell("losses", "narrow", "loss"), "b": cell("losses", "wide", "loss")}
    ledger.check("difference", "losses", "section 2", "difference", prose("difference"), losses)
