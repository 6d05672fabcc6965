"""Makes the verdict on the log of a search: its ledger entry, its page and its numbers.

The page says what selection alone would have given, which steps beat it, and what to run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.verdict import formatting
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import CLAIM, LOOP, POWER, TARGET_GAIN_SIGMAS, ComparisonTerms
from plumbline.verdict.evidence import Evidence, SearchLogEntry
from plumbline.verdict.formatting import escape_cell, format_percent, format_value, quote_name, write_grid, write_table
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers.numbers_request import Draft, NumbersRequest, VerdictTexts, plain, write_texts
from plumbline.verdict.numbers.score_table_page import sigma_span
from plumbline.verdict.numbers.search import KeptChange, SearchJudgement, judge_search
from plumbline.verdict.numbers.search_noise import WORLDS
from plumbline.verdict.numbers.sentences import direction, p_of, sentence
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.seed_values import CannotBeJudgedError

#: What of a search's verdict hangs on normal tails, as benchmarks/numbers_verdict_rates.md measured it.
TAILS = (
    "What hangs on normal tails: where 2.5 % is promised, logs of 100 changes that do nothing are said to gain in 11, "
    "32 and 42 % of cases (with 3, 10 and 30 runs of the start) if noise has the heavy tails of Student's t with 3 "
    "degrees of freedom, and in 12, 45 and 52 % if one run in 20 is 5 sigma off (benchmarks/numbers_verdict_rates.md). "
    "Only runs after the selection are safe from that."
)


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
    entries = [search_entry(steps, request.columns.metric, request.terms, planned_tries=request.planned_tries)]
    return entries, lambda ledger: _written(request, searched, ledger)


def search_entry(
    steps: Sequence[SearchLogEntry], metric: str, terms: ComparisonTerms, *, planned_tries: int = 0
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
        planned_tries=planned_tries,
    )


def _written(request: NumbersRequest, searched: Evidence, ledger: Ledger) -> VerdictTexts:
    metric, steps, notes = request.columns.metric, searched.log, [*searched.notes, *_notes(searched.log)]
    start = next(step for step in steps if step.value is not None).commit
    judged = judge_search(request.path, steps, request.terms, tries=ledger.count_tries(start, metric))
    families = [(start, metric)]
    read = (
        f"The log of a search was read from {quote_name(request.path.name)} (its columns "
        f"{quote_name(request.columns.commit)} and {quote_name((searched.statuses or ('',))[0])} say so): "
        f"{format_count(len(steps), 'run')}, metric {quote_name(metric)}."
    )
    tried = ledgers.describe_tries(ledger, start, metric)
    search: dict[str, Any] = {key: value for key, value in plain(judged).items() if key != "terms"}
    numbers = {"shape": "search", "metric": metric, "baseline": start, "search": search, "notes": notes}
    return write_texts(
        request,
        ledger,
        families,
        sections(judged, metric, read=" ".join([read, *notes]), tried=tried),
        limits=limits(judged),
        numbers=numbers,
        outcomes={judged.kept[-1].step.commit: judged.outcome} if judged.kept else {},
    )


def _notes(steps: Sequence[SearchLogEntry]) -> list[str]:
    """How statuses and commits of the log were understood, where that is not plain."""
    notes = []
    words = Counter((step.word, step.status) for step in steps if step.word not in ("", step.status))
    if words:
        said = [f"{quote_name(word)} ({number}) as {meant}" for (word, meant), number in sorted(words.items())]
        notes.append(f"Statuses are read as loops write them: {', '.join(said)}.")
    several = Counter(commit for commit, _ in {step.configuration for step in steps})
    for commit, number in several.most_common(3):
        if number > 1:
            notes.append(f"{quote_name(commit)} stands with {number} descriptions: {number} configurations, not one.")
    return notes


def search_sentence(judged: SearchJudgement, metric: str, tried: str | None = None) -> str:
    """Write the page's first sentence: the verdict on the search, to be quoted as it is.

    `tried`: the tries against its start, and where they stand.
    """
    start = judged.start.commit
    if judged.outcome is Outcome.CRASHED:
        return (
            f"{last_kept(judged)}, the last kept change, crashed or diverged when it was run again "
            f"({format_count(len(judged.lost), 'run')}, line {judged.lost[0].line}), more often than the start "
            f"{quote_name(start)}."
        )
    if judged.decided_by is not None:
        return "The last kept change, by its runs after it was kept: " + sentence(
            judged.decided_by, start, metric, tried={start: tried} if tried else {}
        )
    sigma, total = judged.sigma, format_value(judged.total, judged.sigma)
    # Of no gain, or less than none, no share can be said.
    share = f", {format_percent(judged.selection / judged.total)} of it," if judged.total > 0 else ""
    alone = (
        f"over {format_count(judged.steps, 'change')} that do nothing, selection alone gives "
        f"{format_value(judged.selection, sigma)}{share} on average at sigma = {sigma:.2g}, and as much as was seen in "
        f"{format_percent(judged.p)} of searches"
    )
    level = f"one-sided {p_of(judged.p, judged.p_corrected, judged.tries, tried)}"
    if judged.outcome is Outcome.KEEP:
        return (
            f"The search improves {quote_name(metric)} beyond selection ({level}): its total gain is {total}; {alone}."
        )
    if judged.outcome is Outcome.DISCARD:
        above = f"ruled out above {format_value(judged.high, sigma)}" if judged.high > 0 else "ruled out"
        return f"The search: a gain in {quote_name(metric)} is {above}: {total} was seen ({level}); {alone}."
    terms, more = judged.terms, ""
    if judged.runs_for_target_gain and judged.kept:
        asked = f"{TARGET_GAIN_SIGMAS:g} sigma" if terms.asked_gain is None else f"{terms.asked_gain:g}"
        more = (
            f": {format_count(judged.runs_for_target_gain, 'more run')} of {last_kept(judged)} and as many of "
            f"{quote_name(start)} in all would find a gain of {asked} with {format_percent(POWER)} chance"
        )
        if terms.asked_gain is not None:
            more += f" at sigma = {sigma:.2g}"
    return (
        f"The search's gain of {total} in {quote_name(metric)} is not decided{more} ({level}): {alone}; if sigma were "
        f"known to be that, {format_percent(judged.p_face)}."
    )


def last_kept(judged: SearchJudgement) -> str:
    """Name the last kept change: its commit, and its description where the start has the same commit."""
    step = judged.kept[-1].step
    same = step.commit == judged.start.commit
    return quote_name(f"{step.commit} {step.description}" if same else step.commit)


def sections(judged: SearchJudgement, metric: str, *, read: str, tried: str | None = None) -> list[str]:
    """Write the page of a search up to its ledger.

    Args:
        read: what was read from where.
        tried: the tries against its start, and where they stand.
    """
    return [
        "# Verdict on a search",
        search_sentence(judged, metric, tried),
        "## Evidence",
        f"{read} {direction(judged.terms)}; gains count upwards, from the mean of the start.",
        _evidence(judged),
        _assumed(judged),
        "## Kept changes",
        _kept(judged),
        "## What to run again",
        _again(judged),
    ]


def _evidence(judged: SearchJudgement) -> str:
    sigma = judged.sigma
    rows = [
        ("start", f"{quote_name(judged.start.commit)}, line {judged.start.line}"),
        ("changes that gave a number", f"{judged.steps}, of which {len(judged.kept)} kept; {judged.crashes} crashed"),
        (
            "sigma of one run",
            f"{sigma:.3g}, {judged.noise}; degrees of freedom: {formatting.format_freedom(judged.freedom)}",
        ),
        ("sigma's interval, 95 %", sigma_span(sigma, judged.freedom)),
        ("spread of the changes' own runs", f"{judged.spread:.3g}; about sigma if they do nothing, more otherwise"),
        ("mean of the start", f"{format_value(sum(judged.start_runs) / len(judged.start_runs), sigma)}"),
        ("total gain of the last kept run", f"{format_value(judged.total, sigma)}, {judged.total / sigma:.2f} sigma"),
        (
            "what selection alone gives",
            f"{format_value(judged.selection, sigma)} on average, 90 % of searches from "
            f"{format_value(judged.selection_low, sigma)} to {format_value(judged.selection_high, sigma)}",
        ),
        ("one-sided p", f"{formatting.format_p(judged.p)} (if sigma were known: {formatting.format_p(judged.p_face)})"),
        (
            "corrected p",
            f"{formatting.format_p(judged.p_corrected)}, for {format_count(judged.tries, 'try', 'tries')}; it must be "
            f"at most {judged.terms.alpha:g}",
        ),
        (
            f"beyond selection at {LOOP:g}, for a loop; at {CLAIM:g}, for a claim",
            " ; ".join("yes" if judged.p_corrected <= level else "no" for level in (LOOP, CLAIM)),
        ),
        ("a gain is ruled out above", format_value(judged.high, sigma)),
        (
            f"smallest real gain found with {format_percent(POWER)} chance",
            f"{format_value(judged.resolved, sigma)}, {judged.resolved / sigma:.1f} sigma, if the first change made it",
        ),
    ]
    return write_grid(("what", "value"), rows)


def _assumed(judged: SearchJudgement) -> str:
    beat = f" by more than {judged.terms.minimum_gain:g}" if judged.terms.minimum_gain else ""
    return (
        f"Assumed in {WORLDS:,} simulated searches: every change does nothing; runs are independent and normal with "
        f"one sigma; the start is run {format_count(len(judged.start_runs), 'time')}; each of {judged.steps} changes "
        f"is kept if it beats the best so far{beat}. p is the share of them whose total gain, in units of the sigma "
        "estimated from as many repeats, is at least the log's."
    )


def _kept(judged: SearchJudgement) -> str:
    if not judged.kept:
        return "No change was kept."
    sigma, level = judged.sigma, judged.terms.alpha / judged.tries
    columns: dict[str, Callable[[KeptChange], str]] = {
        "kept change": lambda each: f"{quote_name(each.step.commit)} {escape_cell(each.step.description)}".rstrip(),
        "line": lambda each: str(each.step.line),
        "changes so far": lambda each: str(each.number),
        "gain so far": lambda each: format_value(each.gain, sigma),
        "selection alone: mean (95 % of searches below)": lambda each: (
            f"{format_value(each.selection, sigma)} ({format_value(each.selection_high, sigma)})"
        ),
        "one-sided p": lambda each: formatting.format_p(each.p_gain),
        "gain beyond selection": lambda each: "yes" if each.p_gain <= level else "no",
        "own jump": lambda each: format_value(each.jump, sigma),
        "p of the jump": lambda each: formatting.format_p(each.p_jump),
        "jump beyond": lambda each: "yes" if each.p_jump <= level else "no",
        "runs after it was kept": lambda each: _rerun(each, sigma),
    }
    again = sum(each.rerun is not None for each in judged.kept)
    of_several = f" The {again} that were run again are tries side by side." if again > 1 else ""
    return (
        write_table(columns, judged.kept)
        + f"\n\nBoth p-values are against the whole search, the largest gain and the largest jump of all "
        f"{judged.steps} changes: in a search over noise any gain is marked with a chance of at most "
        f"{judged.terms.alpha:g}, and likewise any jump. A jump is from the best before it, which was lucky too: so "
        f"only a part of a real gain shows.{of_several}"
    )


def _rerun(each: KeptChange, sigma: float) -> str:
    gone = f"{len(each.lost)} crashed or diverged" if each.lost else ""
    if each.rerun is None:
        return gone or "none"
    again = each.rerun
    found = f"gain {format_value(again.gain, sigma)}, p = {formatting.format_p(again.p_corrected)}, {again.outcome}"
    return f"{gone and gone + '; '}{again.n}: {found}"


def _again(judged: SearchJudgement) -> str:
    if not judged.kept:
        return "Nothing: no change was kept."
    last, start, sigma = last_kept(judged), quote_name(judged.start.commit), judged.sigma
    lines = []
    left = f"{format_value(judged.expected, sigma)}, which is the total gain without what selection gives on average"
    if judged.runs_each:
        lines.append(f"{last} and {start}, {judged.runs_each} runs of each: finds a gain of {left}.")
    elif judged.expected > 0:
        lines.append(f"No number of runs below a million finds a gain of {left}.")
    else:
        lines.append("Nothing of the total gain is left without what selection gives on average. To find out:")
    for size in (1, 2):
        runs = judged.runs_for(size * sigma)
        if runs:
            lines.append(f"{last} and {start}, {runs} runs of each: finds a gain of {size} sigma ({size * sigma:.2g}).")
    if len(judged.kept) > 1 and (runs := judged.runs_for(2 * sigma, len(judged.kept))):
        lines.append(
            f"Every kept change and {start}, {runs} runs of each: finds which of the {len(judged.kept)} are 2 sigma "
            "above the start."
        )
    fewest = len(judged.start_runs)
    if judged.terms.sigma is None and fewest < 10:
        lines.append(
            f"{start} alone, {10 - fewest} runs more: sigma from {format_count(fewest, 'run')} of the start lets this "
            f"log distinguish only gains above {judged.resolved / sigma:.1f} sigma from noise."
        )
    listed = "\n".join(f"- {line}" for line in lines)
    return (
        f"{listed}\n\nEach is found with {format_percent(POWER)} chance, other seeds each time. Add the rows under the "
        "same commit and description: runs of a configuration after its first were not selected, and those of the "
        "last kept change decide."
    )


def limits(judged: SearchJudgement) -> list[str]:
    """List what the page of a search does not say and what it assumes."""
    sentences = [
        "The page asks whether the whole total gain is beyond selection. A search in which some changes do something "
        "has different noise on top of them; only runs after the selection show which changes those are.",
        "Changes with a larger spread than the start (an unstable setting) are kept more easily than assumed.",
        TAILS,
        "A commit with its description is one configuration: rows with both are its runs.",
    ]
    if judged.terms.sigma is not None:
        sentences.append(
            f"Sigma is {judged.terms.sigma:g} as given by --sigma; repeats in the log were not used for it."
        )
    if judged.against_rule:
        lines = formatting.join_with_and([str(step.line) for step in judged.against_rule[:20]])
        rest = f" and {len(judged.against_rule) - 20} more" if len(judged.against_rule) > 20 else ""
        sentences.append(
            f"{format_count(len(judged.against_rule), 'run was', 'runs were')} kept without an improvement, or "
            f"discarded in spite of one (lines {lines}{rest}): such a search gains less than what is simulated, so "
            "that this page "
            'errs on the side of "not decided".'
        )
    return sentences
