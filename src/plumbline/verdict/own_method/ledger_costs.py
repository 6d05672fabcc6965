"""Counts what a user's own file costs in the ledger: an entry for each method, known before any of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.ledger import Ledger, LedgerEntry

if TYPE_CHECKING:
    from plumbline.specs.own_methods_file import OwnMethodsFile


def make_terms(mine: OwnMethodsFile, *, higher: bool) -> ComparisonTerms:
    """State the terms of the comparison that a user's own file asks for.

    `higher`: whether the metric is better higher.
    """
    settings = mine.asked
    keys = ("alpha", "minimum_gain", "paired", "allow_diverged")
    return ComparisonTerms(higher=higher, **{key: settings[key] for key in keys})


def name_baseline(mine: OwnMethodsFile, method: str) -> str:
    """Name a method's baseline as the ledger has it: ``study/scale/method``."""
    return mine.runs(mine.scale, mine.against[method])[0].key.rpartition("/")[0]


def make_entries(mine: OwnMethodsFile) -> list[LedgerEntry]:
    """Make a ledger entry for each method of the file: its specs with all seeds, its baseline's, and how the metric is
    read.

    Who adds seeds and tests again has tested twice.
    """
    tries = []
    for method, against in mine.against.items():
        ids = [[run.spec.run_id for run in mine.runs(mine.scale, name)] for name in (method, against)]
        tries.append(
            LedgerEntry(
                kind="spec",
                name=f"{mine.name}/{method}",
                fingerprint=ledgers.fingerprint([*ids, mine.asked["last"]]),
                baseline=name_baseline(mine, method),
                metric=mine.asked["decides"],
                test=make_terms(mine, higher=True).test,
                planned_tries=mine.asked["planned_tries"],
            )
        )
    return tries


def count_tries(ledger: Ledger, new_entries: Sequence[LedgerEntry]) -> dict[str, int]:
    """Count, by baseline, what every p is multiplied by once these entries are in the ledger too."""
    extended_ledger = Ledger(ledger.path, (*ledger.entries, *new_entries), ledger.hashes)
    return {entry.baseline: extended_ledger.count_tries(entry.baseline, entry.metric) for entry in new_entries}
