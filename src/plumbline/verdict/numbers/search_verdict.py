"""Makes the verdict on the log of a search: its ledger entry, its page and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import Evidence, SearchLogEntry
from plumbline.verdict.formatting import counted, name
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers.numbers_request import (
    Draft,
    NumbersRequest,
    VerdictTexts,
    common,
    plain,
    repeat,
    section,
)
from plumbline.verdict.numbers.search import judge_search
from plumbline.verdict.numbers.search_page import search_page, search_sentence
from plumbline.verdict.seed_values import CannotBeJudgedError


def draft(request: NumbersRequest, searched: Evidence) -> tuple[Sequence[LedgerEntry], Draft]:
    """Say what a search enters in the ledger, and how its verdict is made then.

    Raises:
        CannotBeJudgedError: there is no noise floor, or a run of the start diverged.
        PlumblineError: the log is none, or a baseline, a goal or a step was named, which a search has not.
    """
    steps = searched.log
    try:
        judged = judge_search(request.path, steps, request.terms)
    except CannotBeJudgedError as error:
        raise CannotBeJudgedError(" ".join([str(error), *searched.notes])) from None
    start = judged.start.commit
    if request.baseline not in (None, start) or request.goal is not None or request.chain or request.at_step:
        raise PlumblineError(
            f"{request.path} is the log of a search, which is compared with its start, {start!r} in line "
            f"{judged.start.line}; leave out --baseline, --goal, --compare-with-previous and --at-step"
        )
    entries = [search_entry(steps, request.columns.metric, request.terms, planned=request.planned)]
    return entries, lambda ledger: _written(request, searched, ledger)


def search_entry(
    steps: Sequence[SearchLogEntry], metric: str, terms: ComparisonTerms, *, planned: int = 0
) -> LedgerEntry:
    """Make the ledger's entry of a search's log.

    It is one entry, whose p pays for the search itself. A log that has grown is another entry.
    """
    start = next(step for step in steps if step.value is not None)
    return LedgerEntry(
        kind="search",
        name=f"search from {start.commit}",
        fingerprint=ledgers.fingerprint([[*step.configuration, step.value, step.status] for step in steps]),
        baseline=start.commit,
        metric=metric,
        test="simulated search" if terms.sigma is None else f"simulated search, {terms.test}",
        planned=planned,
    )


def _written(request: NumbersRequest, searched: Evidence, ledger: Ledger) -> VerdictTexts:
    metric, steps, notes = request.columns.metric, searched.log, [*searched.notes, *_notes(searched.log)]
    start = next(step for step in steps if step.value is not None).commit
    judged = judge_search(request.path, steps, request.terms, tries=ledger.tries(start, metric))
    families = [(start, metric)]
    read = (
        f"The log of a search was read from {name(request.path.name)} (its columns {name(request.columns.commit)} and "
        f"{name((searched.statuses or ('',))[0])} say so): {counted(len(steps), 'run')}, metric {name(metric)}."
    )
    read = " ".join([read, *notes])
    tried = ledgers.tries_in(ledger, start, metric)
    page = search_page(judged, metric, read=read, ledger=section(request, ledger, families), tried=tried)
    search: dict[str, Any] = {key: value for key, value in plain(judged).items() if key != "terms"}
    numbers = {"shape": "search", "metric": metric, "baseline": start, "search": search, "notes": notes}
    return VerdictTexts(
        sentence=search_sentence(judged, metric, tried),
        page=page + repeat(request),
        numbers=numbers | common(request, ledger, families),
        outcomes={judged.kept[-1].step.commit: judged.outcome} if judged.kept else {},
    )


def _notes(steps: Sequence[SearchLogEntry]) -> list[str]:
    """How statuses and commits of the log were understood, where that is not plain."""
    notes = []
    words = Counter((step.word, step.status) for step in steps if step.word not in ("", step.status))
    if words:
        said = [f"{name(word)} ({number}) as {meant}" for (word, meant), number in sorted(words.items())]
        notes.append(f"Statuses are read as loops write them: {', '.join(said)}.")
    several = Counter(commit for commit, _ in {step.configuration for step in steps})
    for commit, number in several.most_common(3):
        if number > 1:
            notes.append(f"{name(commit)} stands with {number} descriptions: {number} configurations, not one.")
    return notes
