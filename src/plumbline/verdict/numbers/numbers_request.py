"""Holds what is to be judged of numbers, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.sources.printed_spreads import PrintedSpread
from plumbline.verdict.sources.row_files import ColumnNames


@dataclass(frozen=True, kw_only=True, slots=True)
class NumbersRequest:
    """A file or folder of numbers, and how it is to be judged.

    Attributes:
        kind: "table", "search", "submissions", "items", or None to see from what is there.
        baseline: the method that the others are compared with (of items, the other model's folder); the start of a
            search is its own.
        goal: a fixed value that methods are compared with instead.
        chain: compare each method with the one before it in the file.
        at_step: the step whose value counts, where runs have several.
        candidate: the method on which the exit code is the verdict; None: no one is requested.
        spread_options: what was said of printed means and their spreads, for a table of them.
        planned_tries: tries that are planned in all against this baseline; 0 if not said.
        equal: measures of a run (`plumbline.verdict.evidence.MEASURES`) that have to be equal, or there is no verdict.
        accept_implausible: a gain that no modification ever had was looked at, and counts as any other.
        size: how large the models are and how long they were trained, in the user's words; not said if empty.
        repeat: the command line that makes the page again.
    """

    path: Path
    terms: ComparisonTerms
    columns: ColumnNames
    ledger: Path
    page: Path
    baseline: str | None = None
    goal: float | None = None
    chain: bool = False
    at_step: str = ""
    kind: str | None = None
    candidate: str | None = None
    spread_options: PrintedSpread = field(default_factory=PrintedSpread)
    planned_tries: int = 0
    equal: tuple[str, ...] = ()
    accept_implausible: bool = False
    size: str = ""
    repeat: str = ""
