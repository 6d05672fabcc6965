"""Makes the verdict on the log of a search: its ledger entry, its page and its numbers.

The page states what selection alone would have given, which steps beat it, and what to run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count, format_percent
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.comparison_terms import CLAIM, LOOP, POWER, TARGET_GAIN_SIGMAS, ComparisonTerms
from plumbline.verdict.evidence import Evidence, SearchLogEntry
from plumbline.verdict.formatting import (
    escape_cell,
    format_freedom,
    format_p,
    format_value,
    join_with_and,
    quote,
    write_grid,
    write_table,
)
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.numbers.score_table_page import format_sigma_interval
from plumbline.verdict.numbers.search import KeptChange, SearchJudgement, judge_search
from plumbline.verdict.numbers.search_noise import WORLDS
from plumbline.verdict.numbers.sentences import describe_direction, write_p, write_sentence
from plumbline.verdict.numbers.verdict_texts import Draft, VerdictTexts, to_json_value, write_texts
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome

#: What of a search's verdict hangs on normal tails, as benchmarks/numbers_verdict_rates.md measured it.
TAILS = (
    "What hangs on normal tails: where 2.5 % is promised, logs of 100 changes that do nothing are said to gain in 11, "
    "32 and 42 % of cases (with 3, 10 and 30 runs of the start) if noise has the heavy tails of Student's t with 3 "
    "degrees of freedom, and in 12, 45 and 52 % if one run in 20 is 5 sigma off (benchmarks/numbers_verdict_rates.md). "
    "Only runs after the selection are safe from that."
)


def draft(request: NumbersRequest, log: Evidence) -> tuple[Sequence[LedgerEntry], Draft]:
    """Make the ledger entry of a search, and the function that then writes its verdict.

    Raises:
        CannotBeJudgedError: there is no noise floor, or a run of the start diverged.
        PlumblineError: the log is none, or a baseline, a goal or a step was named, which a search has not.
    """
    steps = log.log
    try:
        judgement = judge_search(request.path, steps, request.terms)
    except CannotBeJudgedError as error:
        raise CannotBeJudgedError(" ".join([str(error), *log.told, *log.notes])) from None
    start, answers = judgement.start.commit, _examine(request, log, judgement)
    if judgement.outcome is not Outcome.CRASHED and (refusal := every_check.describe_refusal(answers)):
        raise CannotBeJudgedError(refusal)
    if request.baseline not in (None, start) or request.goal is not None or request.chain or request.at_step:
        raise PlumblineError(
            f"{request.path} is the log of a search, which is compared with its start, {start!r} in line "
            f"{judgement.start.line}; leave out --baseline, --goal, --compare-with-previous and --at-step"
        )
    entries = [make_entry(steps, request.columns.metric, request.terms, planned_tries=request.planned_tries)]
    return entries, lambda ledger: _write(request, log, answers, ledger)


def _examine(request: NumbersRequest, log: Evidence, judgement: SearchJudgement) -> Answers:
    """What the checks of comparability answer of the last kept change and the start; nothing where none was kept."""
    if not judgement.kept:
        return {}
    last, start = judgement.kept[-1].step, judgement.start
    arms = ComparedArms(
        evidence=log,
        baseline=start.label,
        candidate=last.label,
        higher=request.terms.higher,
        equal=request.equal,
    )
    return every_check.examine(arms)


def make_entry(
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


def _write(request: NumbersRequest, log: Evidence, answers: Answers, ledger: Ledger) -> VerdictTexts:
    metric, steps, notes = request.columns.metric, log.log, [*log.notes, *_write_notes(log.log)]
    start = next(step for step in steps if step.value is not None).commit
    judgement = judge_search(request.path, steps, request.terms, tries=ledger.count_tries(start, metric))
    families = [(start, metric)]
    source_text = (
        f"The log of a search was read from {quote(request.path.name)} (its columns {quote(request.columns.commit)} "
        f"and {quote((log.statuses or ('',))[0])} say so): {format_count(len(steps), 'run')}, metric {quote(metric)}."
    )
    tried = ledgers.describe_tries(ledger, start, metric)
    search: dict[str, Any] = {key: value for key, value in to_json_value(judgement).items() if key != "terms"}
    numbers = {"shape": "search", "metric": metric, "baseline": start, "search": search}
    return write_texts(
        request,
        ledger,
        families,
        write_sections(judgement, metric, source_text=" ".join([source_text, *notes]), tried=tried),
        answers={judgement.kept[-1].step.commit: answers} if answers else {},
        notes=log.told,
        limits=list_limits(judgement),
        numbers={**numbers, "notes": [*notes, *log.told]},
        outcomes={judgement.kept[-1].step.commit: judgement.outcome} if judgement.kept else {},
    )


def _write_notes(steps: Sequence[SearchLogEntry]) -> list[str]:
    """How statuses and commits of the log were understood, where that is not plain."""
    notes = []
    statuses = Counter((step.word, step.status) for step in steps if step.word not in ("", step.status))
    if statuses:
        translations = [
            f"{quote(word)} ({number}) as {meaning}" for (word, meaning), number in sorted(statuses.items())
        ]
        notes.append(f"Statuses are read as loops write them: {', '.join(translations)}.")
    several = Counter(commit for commit, _ in {step.configuration for step in steps})
    for commit, number in several.most_common(3):
        if number > 1:
            notes.append(f"{quote(commit)} stands with {number} descriptions: {number} configurations, not one.")
    return notes


def write_search_sentence(judgement: SearchJudgement, metric: str, tries_text: str | None = None) -> str:
    """Write the page's first sentence: the verdict on the search, to be quoted as it is.

    `tries_text`: the tries against its start, and where they stand.
    """
    start = judgement.start.commit
    if judgement.outcome is Outcome.CRASHED:
        return (
            f"{name_last_kept(judgement)}, the last kept change, crashed or diverged when it was run again "
            f"({format_count(len(judgement.lost_runs), 'run')}, line {judgement.lost_runs[0].line}), more often than "
            f"the start {quote(start)}."
        )
    if judgement.decided_by is not None:
        return "The last kept change, by its runs after it was kept: " + write_sentence(
            judgement.decided_by, start, metric, tries_text={start: tries_text} if tries_text else {}
        )
    sigma, total = judgement.sigma, format_value(judgement.total, judgement.sigma)
    # Of no gain, or less than none, no share can be said.
    share = f", {format_percent(judgement.selection / judgement.total)} of it," if judgement.total > 0 else ""
    luck = (
        f"over {format_count(judgement.steps, 'change')} that do nothing, selection alone gives "
        f"{format_value(judgement.selection, sigma)}{share} on average at sigma = {sigma:.2g}, and as much as was seen "
        f"in {format_percent(judgement.p)} of searches"
    )
    level = f"one-sided {write_p(judgement.p, judgement.p_corrected, judgement.tries, tries_text)}"
    if judgement.outcome is Outcome.KEEP:
        return f"The search improves {quote(metric)} beyond selection ({level}): its total gain is {total}; {luck}."
    if judgement.outcome is Outcome.DISCARD:
        ruling = f"ruled out above {format_value(judgement.high, sigma)}" if judgement.high > 0 else "ruled out"
        return f"The search: a gain in {quote(metric)} is {ruling}: {total} was seen ({level}); {luck}."
    terms, hint = judgement.terms, ""
    if judgement.runs_for_target_gain and judgement.kept:
        gain = f"{TARGET_GAIN_SIGMAS:g} sigma" if terms.asked_gain is None else f"{terms.asked_gain:g}"
        hint = (
            f": {format_count(judgement.runs_for_target_gain, 'more run')} of {name_last_kept(judgement)} and as "
            "many of "
            f"{quote(start)} in all would find a gain of {gain} with {format_percent(POWER)} chance"
        )
        if terms.asked_gain is not None:
            hint += f" at sigma = {sigma:.2g}"
    return (
        f"The search's gain of {total} in {quote(metric)} is not decided{hint} ({level}): {luck}; if sigma were "
        f"known to be that, {format_percent(judgement.p_face)}."
    )


def name_last_kept(judgement: SearchJudgement) -> str:
    """Name the last kept change: its commit, and its description where the start has the same commit."""
    step = judgement.kept[-1].step
    is_start_commit = step.commit == judgement.start.commit
    return quote(f"{step.commit} {step.description}" if is_start_commit else step.commit)


def write_sections(judgement: SearchJudgement, metric: str, *, source_text: str, tried: str | None = None) -> list[str]:
    """Write the page of a search up to its ledger.

    Args:
        source_text: what was read from where.
        tried: the tries against its start, and where they stand.
    """
    return [
        "# Verdict on a search",
        write_search_sentence(judgement, metric, tried),
        "## Evidence",
        f"{source_text} {describe_direction(judgement.terms)}; gains count upwards, from the mean of the start.",
        _write_evidence(judgement),
        _describe_assumptions(judgement),
        "## Kept changes",
        _write_kept_changes(judgement),
        "## What to run again",
        _advise_repeats(judgement),
    ]


def _write_evidence(judgement: SearchJudgement) -> str:
    sigma = judgement.sigma
    rows = [
        ("start", f"{quote(judgement.start.commit)}, line {judgement.start.line}"),
        (
            "changes that gave a number",
            f"{judgement.steps}, of which {len(judgement.kept)} kept; {judgement.crashes} crashed",
        ),
        (
            "sigma of one run",
            f"{sigma:.3g}, {judgement.noise}; degrees of freedom: {format_freedom(judgement.freedom)}",
        ),
        ("sigma's interval, 95 %", format_sigma_interval(sigma, judgement.freedom)),
        ("spread of the changes' own runs", f"{judgement.spread:.3g}; about sigma if they do nothing, more otherwise"),
        ("mean of the start", f"{format_value(sum(judgement.start_runs) / len(judgement.start_runs), sigma)}"),
        (
            "total gain of the last kept run",
            f"{format_value(judgement.total, sigma)}, {judgement.total / sigma:.2f} sigma",
        ),
        (
            "what selection alone gives",
            f"{format_value(judgement.selection, sigma)} on average, 90 % of searches from "
            f"{format_value(judgement.selection_low, sigma)} to {format_value(judgement.selection_high, sigma)}",
        ),
        ("one-sided p", f"{format_p(judgement.p)} (if sigma were known: {format_p(judgement.p_face)})"),
        (
            "corrected p",
            f"{format_p(judgement.p_corrected)}, for {format_count(judgement.tries, 'try', 'tries')}; it "
            f"must be at most {judgement.terms.alpha:g}",
        ),
        (
            f"beyond selection at {LOOP:g}, for a loop; at {CLAIM:g}, for a claim",
            " ; ".join("yes" if judgement.p_corrected <= level else "no" for level in (LOOP, CLAIM)),
        ),
        ("a gain is ruled out above", format_value(judgement.high, sigma)),
        (
            f"smallest real gain found with {format_percent(POWER)} chance",
            f"{format_value(judgement.resolved, sigma)}, {judgement.resolved / sigma:.1f} sigma, if the first change "
            "made it",
        ),
    ]
    return write_grid(("what", "value"), rows)


def _describe_assumptions(judgement: SearchJudgement) -> str:
    beat = f" by more than {judgement.terms.minimum_gain:g}" if judgement.terms.minimum_gain else ""
    return (
        f"Assumed in {WORLDS:,} simulated searches: every change does nothing; runs are independent and normal with "
        f"one sigma; the start is run {format_count(len(judgement.start_runs), 'time')}; each of {judgement.steps} "
        f"changes is kept if it beats the best so far{beat}. p is the share of them whose total gain, in units of the "
        "sigma estimated from as many repeats, is at least the log's."
    )


def _write_kept_changes(judgement: SearchJudgement) -> str:
    if not judgement.kept:
        return "No change was kept."
    sigma, level = judgement.sigma, judgement.terms.alpha / judgement.tries
    columns: dict[str, Callable[[KeptChange], str]] = {
        "kept change": lambda each: f"{quote(each.step.commit)} {escape_cell(each.step.description)}".rstrip(),
        "line": lambda each: str(each.step.line),
        "changes so far": lambda each: str(each.number),
        "gain so far": lambda each: format_value(each.gain, sigma),
        "selection alone: mean (95 % of searches below)": lambda each: (
            f"{format_value(each.selection, sigma)} ({format_value(each.selection_high, sigma)})"
        ),
        "one-sided p": lambda each: format_p(each.p_gain),
        "gain beyond selection": lambda each: "yes" if each.p_gain <= level else "no",
        "own jump": lambda each: format_value(each.jump, sigma),
        "p of the jump": lambda each: format_p(each.p_jump),
        "jump beyond": lambda each: "yes" if each.p_jump <= level else "no",
        "runs after it was kept": lambda each: _describe_rerun(each, sigma),
    }
    reruns = sum(each.rerun is not None for each in judgement.kept)
    of_several = f" The {reruns} that were run again are tries side by side." if reruns > 1 else ""
    return (
        write_table(columns, judgement.kept)
        + f"\n\nBoth p-values are against the whole search, the largest gain and the largest jump of all "
        f"{judgement.steps} changes: in a search over noise any gain is marked with a chance of at most "
        f"{judgement.terms.alpha:g}, and likewise any jump. A jump is from the best before it, which was lucky too: so "
        f"only a part of a real gain shows.{of_several}"
    )


def _describe_rerun(each: KeptChange, sigma: float) -> str:
    lost_text = f"{len(each.lost)} crashed or diverged" if each.lost else ""
    if each.rerun is None:
        return lost_text or "none"
    rerun = each.rerun
    result = f"gain {format_value(rerun.gain, sigma)}, p = {format_p(rerun.p_corrected)}, {rerun.outcome}"
    return f"{lost_text and lost_text + '; '}{rerun.n}: {result}"


def _advise_repeats(judgement: SearchJudgement) -> str:
    if not judgement.kept:
        return "Nothing: no change was kept."
    last, start, sigma = name_last_kept(judgement), quote(judgement.start.commit), judgement.sigma
    lines = []
    remainder = (
        f"{format_value(judgement.expected, sigma)}, which is the total gain without what selection gives on average"
    )
    if judgement.runs_each:
        lines.append(f"{last} and {start}, {judgement.runs_each} runs of each: finds a gain of {remainder}.")
    elif judgement.expected > 0:
        lines.append(f"No number of runs below a million finds a gain of {remainder}.")
    else:
        lines.append("Nothing of the total gain is left without what selection gives on average. To find out:")
    for size in (1, 2):
        runs = judgement.runs_for(size * sigma)
        if runs:
            lines.append(f"{last} and {start}, {runs} runs of each: finds a gain of {size} sigma ({size * sigma:.2g}).")
    if len(judgement.kept) > 1 and (runs := judgement.runs_for(2 * sigma, len(judgement.kept))):
        lines.append(
            f"Every kept change and {start}, {runs} runs of each: finds which of the {len(judgement.kept)} are 2 sigma "
            "above the start."
        )
    fewest = len(judgement.start_runs)
    if judgement.terms.sigma is None and fewest < 10:
        lines.append(
            f"{start} alone, {10 - fewest} runs more: sigma from {format_count(fewest, 'run')} of the start lets this "
            f"log distinguish only gains above {judgement.resolved / sigma:.1f} sigma from noise."
        )
    bullets = "\n".join(f"- {line}" for line in lines)
    return (
        f"{bullets}\n\nEach is found with {format_percent(POWER)} chance, other seeds each time. Add the rows under "
        "the same commit and description: runs of a configuration after its first were not selected, and those of the "
        "last kept change decide."
    )


def list_limits(judgement: SearchJudgement) -> list[str]:
    """List what the page of a search does not say and what it assumes."""
    sentences = [
        "The page asks whether the whole total gain is beyond selection. A search in which some changes do something "
        "has different noise on top of them; only runs after the selection show which changes those are.",
        "Changes with a larger spread than the start (an unstable setting) are kept more easily than assumed.",
        TAILS,
        "A commit with its description is one configuration: rows with both are its runs.",
    ]
    if judgement.terms.sigma is not None:
        sentences.append(
            f"Sigma is {judgement.terms.sigma:g} as given by --sigma; repeats in the log were not used for it."
        )
    if judgement.against_rule:
        lines = join_with_and([str(step.line) for step in judgement.against_rule[:20]])
        tail = f" and {len(judgement.against_rule) - 20} more" if len(judgement.against_rule) > 20 else ""
        sentences.append(
            f"{format_count(len(judgement.against_rule), 'run was', 'runs were')} kept without an improvement, or "
            f"discarded in spite of one (lines {lines}{tail}): such a search gains less than what is simulated, so "
            "that this page "
            'errs on the side of "not decided".'
        )
    return sentences
