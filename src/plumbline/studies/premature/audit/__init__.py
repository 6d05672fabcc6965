"""The premature study's audit rows: what of its printed numbers follows from others."""

from __future__ import annotations

from plumbline.audit.rows import Ledger
from plumbline.studies.premature.audit import controls, formulas, main_results

#: Importing it registers the document's own formulas.
REGISTERED = (formulas,)


def audit(ledger: Ledger) -> None:
    """All rows of the document."""
    for part in (main_results, controls):
        part.audit(ledger)
