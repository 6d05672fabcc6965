"""Makes a verdict from a file of numbers: reads it, enters it in the ledger, judges, writes the page."""

from __future__ import annotations

import dataclasses
import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import shown
from plumbline.experiment import ledger as ledgers
from plumbline.experiment.comparison_terms import ComparisonTerms
from plumbline.experiment.formatting import counted, name
from plumbline.experiment.judge import BaselineComparison, judge_all
from plumbline.experiment.ledger import Ledger, LedgerEntry
from plumbline.experiment.read_numbers import (
    ColumnNames,
    FileRows,
    ScoreTable,
    SearchLogEntry,
    read_rows,
    read_search,
    read_table,
    shape,
)
from plumbline.experiment.score_table_page import headline, table_page
from plumbline.experiment.search import SearchJudgement, judge_search
from plumbline.experiment.search_page import search_page, search_sentence


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenVerdict:
    """A verdict as it is written: its first sentence, the whole page, and every number of it as JSON."""

    sentence: str
    page: str
    numbers: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class NumbersRequest:
    """A file of numbers, and how it is to be judged.

    Attributes:
        kind: "table", "search", or None to see from the columns.
        baseline: the method that the others are compared with; the start of a search is its own.
        planned: tries that are planned in all against this baseline and in this metric; 0 if not said.
        repeat: the command line that makes the page again.
    """

    path: Path
    terms: ComparisonTerms
    columns: ColumnNames
    ledger: Path
    page: Path
    baseline: str | None = None
    kind: str | None = None
    planned: int = 0
    repeat: str = ""


def verdict(request: NumbersRequest) -> WrittenVerdict:
    """Judge a file, and enter it in the ledger; nothing is entered where the file cannot be judged.

    Raises:
        PlumblineError: the file, its terms or the ledger are at fault; or the page to be replaced was made with a
            ledger that this one is not a continuation of.
    """
    if request.planned < 0:
        raise PlumblineError(f"--comparisons {request.planned} must be a number of tries, 1 or more")
    rows = read_rows(request.path)
    kind = request.kind or shape(rows, request.columns)
    if kind == "table":
        return _of_table(request, rows)
    return _of_search(request, rows)


def write(request: NumbersRequest) -> WrittenVerdict:
    """Judge a file as `verdict` does, and write the page and, beside it, its numbers as .json.

    Raises:
        PlumblineError: as `verdict`; or the page's name does not end in .md, or is that of another file.
    """
    if request.page.suffix != ".md":
        raise PlumblineError(
            f"--out {request.page} must end in .md; the numbers go next to it, in a file ending in .json"
        )
    if request.page.exists() and ledgers.stated(request.page) is None:
        raise PlumblineError(f"{request.page} exists and is not a page of a verdict; name another file with --out")
    made = verdict(request)
    files.atomic_write_json(request.page.with_suffix(".json"), made.numbers)
    files.atomic_write_text(request.page, made.page)
    return made


def _of_table(request: NumbersRequest, rows: FileRows) -> WrittenVerdict:
    table, baseline = read_table(rows, request.columns), request.baseline
    if baseline is None:
        raise PlumblineError(f"name the method to compare with: --baseline, one of {sorted(table.values)}")
    judge_all(table.values, baseline, request.terms)  # what cannot be judged is no try
    entries = table_entries(table, baseline, request.terms, planned=request.planned)
    ledger = _enter(request, entries)
    tries = ledger.tries(baseline, table.metric)
    judged = judge_all(table.values, baseline, request.terms, tries=tries)
    read = (
        f"A table of methods and seeds was read from {name(request.path.name)}: "
        f"{counted(len(table.values), 'method')}, {counted(sum(map(len, table.values.values())), 'run')}, metric "
        f"{name(table.metric)}."
    )
    page = table_page(
        judged, baseline, table.metric, read=read, ledger=_section(request, ledger, baseline, table.metric)
    )
    numbers = {"shape": "table", "metric": table.metric, "baseline": baseline}
    return WrittenVerdict(
        sentence=headline(judged, baseline, table.metric),
        page=page + _repeat(request),
        numbers=numbers
        | {"methods": {key: of_judgement(each) for key, each in judged.items()}}
        | _common(request, ledger, baseline, table.metric),
    )


def table_entries(table: ScoreTable, baseline: str, terms: ComparisonTerms, *, planned: int = 0) -> list[LedgerEntry]:
    """Make the ledger's entries of a table: one for each method, in the order of their names.

    The baseline's seeds are part of each: who adds some and looks again has looked twice.
    """
    return [
        LedgerEntry(
            kind="numbers",
            name=method,
            fingerprint=ledgers.fingerprint([table.values[method], table.values[baseline]]),
            baseline=baseline,
            metric=table.metric,
            test=terms.test,
            planned=planned,
        )
        for method in sorted(set(table.values) - {baseline})
    ]


def _of_search(request: NumbersRequest, rows: FileRows) -> WrittenVerdict:
    steps, metric = read_search(rows, request.columns), request.columns.metric
    judged = judge_search(request.path, steps, request.terms)
    start = judged.start.commit
    if request.baseline not in (None, start):
        raise PlumblineError(
            f"--baseline {request.baseline!r}: a search is compared with its start, {start!r} in line "
            f"{judged.start.line}; leave it out"
        )
    ledger = _enter(request, [search_entry(steps, metric, request.terms, planned=request.planned)])
    tries = ledger.tries(start, metric)
    judged = judge_search(request.path, steps, request.terms, tries=tries)
    read = (
        f"The log of a search was read from {name(request.path.name)} (its columns {name(request.columns.commit)} and "
        f"{name(request.columns.status)} say so): {counted(len(steps), 'run')}, metric {name(metric)}."
    )
    page = search_page(judged, metric, read=read, ledger=_section(request, ledger, start, metric))
    numbers = {"shape": "search", "metric": metric, "baseline": start, "search": _of_search_judgement(judged)}
    return WrittenVerdict(
        sentence=search_sentence(judged, metric),
        page=page + _repeat(request),
        numbers=numbers | _common(request, ledger, start, metric),
    )


def search_entry(steps: list[SearchLogEntry], metric: str, terms: ComparisonTerms, *, planned: int = 0) -> LedgerEntry:
    """Make the ledger's entry of a search's log.

    It is one entry, whose p pays for the search itself. A log that has grown is another entry.
    """
    start = next(step for step in steps if step.value is not None)
    return LedgerEntry(
        kind="search",
        name=f"search from {start.commit}",
        fingerprint=ledgers.fingerprint([[step.commit, step.value, step.status] for step in steps]),
        baseline=start.commit,
        metric=metric,
        test="simulated search" if terms.sigma is None else f"simulated search, {terms.test}",
        planned=planned,
    )


def _enter(request: NumbersRequest, entries: list[LedgerEntry]) -> Ledger:
    if request.ledger.resolve() in (request.path.resolve(), request.page.resolve()):
        raise PlumblineError(f"--ledger {request.ledger} is the file of numbers or the page; name a file of its own")
    if (said := ledgers.stated(request.page)) is not None:
        ledgers.compare(ledgers.read(request.ledger), request.page, said)
    return ledgers.append(request.ledger, entries)


def _section(request: NumbersRequest, ledger: Ledger, baseline: str, metric: str) -> str:
    tries, there, planned = (count(baseline, metric) for count in (ledger.tries, ledger.made, ledger.planned))
    more = f" {planned} were announced with --comparisons, and are corrected for from the first on." if planned else ""
    if there > planned > 0:
        more = f" {planned} were announced with --comparisons, fewer than were made."
    if other := len({entry.identity for entry in ledger.entries}) - there:
        more += f" {other} more, against other baselines or in other metrics, are not counted here."
    return (
        f"{counted(there, 'try', 'tries')} against {name(baseline)} in {name(metric)}, this page's among them; every p "
        f"is multiplied by {tries}.{more} The page holds for this state of the ledger: after another "
        "try, rebuild it.\n\n" + ledgers.statement(ledger, request.page.parent)
    )


def _repeat(request: NumbersRequest) -> str:
    check = f"python -m plumbline.experiment --check-page {shlex.quote(shown(request.page))}"
    return (
        "\n## How to repeat\n\nThe same numbers again are not a new try.\n\n"
        f"```console\n$ {request.repeat}\n$ {check}\n```\n\n"
        "The second command checks this page against the ledger: whether lines were removed or added "
        "since.\n"
    )


def _common(request: NumbersRequest, ledger: Ledger, baseline: str, metric: str) -> dict[str, Any]:
    return {
        "terms": plain(request.terms),
        "tries": ledger.tries(baseline, metric),
        "planned": ledger.planned(baseline, metric),
        "ledger": {"length": len(ledger), "head": ledger.head},
        "repeat": request.repeat,
    }


def of_judgement(judged: BaselineComparison) -> dict[str, Any]:
    """Convert a judgement to JSON values, with its power and the tests that decide nothing."""
    beside = ("resolved", "seeds_to_decide", "prediction", "welch", "pairs")
    more = {key: getattr(judged, key) for key in beside}
    return {key: value for key, value in plain(judged).items() if key != "terms"} | plain(more)


def _of_search_judgement(judged: SearchJudgement) -> dict[str, Any]:
    return {key: value for key, value in plain(judged).items() if key != "terms"}


def plain(value: Any) -> Any:
    """Convert a value to JSON: no infinity (a sigma that is known has no degrees of freedom, null) and no NaN
    (null).
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
