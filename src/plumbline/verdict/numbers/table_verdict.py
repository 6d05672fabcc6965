"""Makes the verdict on a table of methods: against one baseline, against a fixed value, or each against the one before.

A run that diverged or crashed has one rule. Of a method, where no run of the baseline did, it is the method's outcome.
Of the baseline, nothing can be judged, unless it was said beforehand how many may; a method may then lose as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.formats import format_count
from plumbline.verdict import implausible_gain
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.formatting import quote
from plumbline.verdict.judge import BaselineComparison, judge, judge_goal
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.numbers.score_table_page import list_limits, write_sections
from plumbline.verdict.numbers.sentences import write_headline, write_lost_sentence, write_sentence
from plumbline.verdict.numbers.summary_comparison import judge_summaries
from plumbline.verdict.numbers.verdict_texts import Draft, VerdictTexts, comparison_to_json, write_texts
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.page import write_list
from plumbline.verdict.picture import DecisionPicture
from plumbline.verdict.runs_picture import picture_runs
from plumbline.verdict.seed_values import describe_seed
from plumbline.verdict.sources.row_files import name_lines

#: What the methods of a chain are compared with, in a page's words.
PREDECESSOR = "predecessor"


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A method and what it is compared with: another method of the table, or, where `goal` is given, a value."""

    method: str
    baseline: str
    goal: float | None = None


def draft(request: NumbersRequest, table: Evidence, source_text: str) -> tuple[Sequence[LedgerEntry], Draft]:
    """Make the ledger entries of a table, and the function that then writes its verdict.

    `source_text`: the beginning of the sentence about what was read.

    Raises:
        CannotBeJudgedError: of no method: there is no noise floor, or the baseline diverged.
        PlumblineError: the baseline is none of the methods, or there is nothing to compare with it.
    """
    pairs, terms = list_pairs(request, table), request.terms
    lost_methods, reasons, answers = set[str](), dict[str, str](), dict[str, Answers]()
    for pair in pairs:
        answers[pair.method] = _examine(request, table, pair)
        try:
            if _is_lost(table, pair, terms):
                lost_methods.add(pair.method)
            elif refusal := every_check.describe_refusal(answers[pair.method]):
                raise CannotBeJudgedError(refusal)
            else:
                _judge(table, pair, terms, len(pairs))
        except CannotBeJudgedError as error:
            reasons[pair.method] = str(error)
    if len(reasons) == len(pairs):
        raise CannotBeJudgedError(" ".join(dict.fromkeys(reasons.values())))
    # What cannot be judged is not a try.
    entries = make_entries(
        table, [pair for pair in pairs if pair.method not in reasons], terms, planned_tries=request.planned_tries
    )
    return entries, lambda ledger: _write(request, table, source_text, pairs, lost_methods, reasons, answers, ledger)


def _examine(request: NumbersRequest, table: Evidence, pair: ComparedPair) -> Answers:
    """What the checks of comparability answer of a method and what it is compared with."""
    return every_check.examine(
        ComparedArms(
            evidence=table,
            baseline=pair.baseline,
            candidate=pair.method,
            higher=request.terms.higher,
            paired=request.terms.paired,
            equal=request.equal,
        )
    )


def list_pairs(request: NumbersRequest, table: Evidence) -> list[ComparedPair]:
    """List what is compared with what.

    Raises:
        PlumblineError: it is not said, said twice, or there is nothing to compare.
    """
    methods = sorted(table.methods)
    flags = [
        flag
        for flag, on in (("--baseline", request.baseline is not None), ("--compare-with-previous", request.chain))
        if on
    ]
    flags += ["--goal"] if request.goal is not None else []
    if len(flags) != 1:
        problem = f"{' and '.join(flags)} exclude each other" if flags else "say what to compare with"
        raise PlumblineError(
            f"{problem}: --baseline METHOD (one of {methods}), --goal VALUE (a fixed value), or "
            "--compare-with-previous (each with the one before it in the file)"
        )
    if request.goal is not None:
        return [ComparedPair(method, f"goal {request.goal!r}", request.goal) for method in methods]
    if request.chain:
        if len(methods) < 2:
            raise PlumblineError(
                f"a chain needs two methods or more; {request.path} has {methods}{_describe_missing(table)}"
            )
        return [
            ComparedPair(method, predecessor)
            for predecessor, method in zip(table.methods, table.methods[1:], strict=False)
        ]
    assert request.baseline is not None
    if request.baseline not in methods:
        hint = nearest(request.baseline, methods)
        raise PlumblineError(
            f"--baseline {request.baseline!r} is none of the methods {methods}{hint}{_describe_missing(table)}"
        )
    if len(methods) < 2:
        raise PlumblineError(
            f"{request.path}: there is no method besides the baseline {request.baseline!r}; add the rows of one"
            f"{_describe_missing(table)}"
        )
    return [ComparedPair(method, request.baseline) for method in methods if method != request.baseline]


def _describe_missing(table: Evidence) -> str:
    """Say, at the end of a message that lacks a method, which ones have rows and no value; empty for none."""
    rows = ", ".join(f"{method!r} ({name_lines(lines)})" for method, lines in table.without.items())
    return f". Without a value of {table.metric!r}: {rows}; write it, or nan where a run diverged" if rows else ""


def make_entries(
    table: Evidence, pairs: Sequence[ComparedPair], terms: ComparisonTerms, *, planned_tries: int = 0
) -> list[LedgerEntry]:
    """Make the ledger's entries of a table: one for each comparison.

    The baseline's seeds are part of each: who adds some and looks again has looked twice. Runs that were lost are too.
    """
    entries = []
    for pair in pairs:
        values = [
            _list_values(table, pair.method),
            _list_values(table, pair.baseline) if pair.goal is None else pair.goal,
        ]
        lost_runs = [table.lost.get(side, {}) for side in (pair.method, pair.baseline)]
        entries.append(
            LedgerEntry(
                kind="numbers",
                name=pair.method,
                fingerprint=ledgers.fingerprint([*values, *lost_runs] if any(lost_runs) else values),
                baseline=pair.baseline,
                metric=table.metric,
                test="one-sample t" if pair.goal is not None and terms.sigma is None else terms.test,
                planned_tries=planned_tries,
            )
        )
    return entries


def _list_values(table: Evidence, method: str) -> dict[str, float] | list[float]:
    """What the ledger has the hash of."""
    if table.summaries:
        printed = table.summaries[method]
        return [printed.mean, printed.std, printed.n]
    return table.values.get(method, {})


def _is_lost(table: Evidence, pair: ComparedPair, terms: ComparisonTerms) -> bool:
    """Whether a method's outcome is that it diverged or crashed."""
    if table.summaries:
        return False
    ours, theirs = (table.lost.get(side, {}) for side in (pair.method, pair.baseline))
    if len(theirs) > terms.allow_diverged:
        seeds = ", ".join(f"{describe_seed(seed)} ({word})" for seed, word in sorted(theirs.items()))
        raise CannotBeJudgedError(
            f"{format_count(len(theirs), 'run')} of the baseline {pair.baseline!r} diverged or crashed: {seeds}. What "
            f"they would have given is not known. If that was expected beforehand, --allow-diverged {len(theirs)} says "
            "how many may, and a method may then lose as many"
        )
    has_lost_more = len(ours) > len(theirs)
    for side in (pair.baseline, *([] if has_lost_more else [pair.method])):
        if runs := table.unfinished.get(side):
            seeds = ", ".join(f"{describe_seed(seed)} ({word})" for seed, word in sorted(runs.items()))
            raise CannotBeJudgedError(
                f"{format_count(len(runs), 'run')} of {side!r} {'has' if len(runs) == 1 else 'have'} not ended: "
                f"{seeds}. To judge the others would select by which ends first: judge again later; of what never "
                "ends, say so: --status-map WORD=crashed"
            )
    if pair.goal is None and pair.baseline not in table.values:
        raise CannotBeJudgedError(f"no run of the baseline {pair.baseline!r} has a value of {table.metric!r}")
    return has_lost_more or pair.method not in table.values


def _judge(table: Evidence, pair: ComparedPair, terms: ComparisonTerms, tries: int) -> BaselineComparison:
    if table.summaries:
        theirs = table.summaries[pair.baseline] if pair.goal is None else pair.goal
        return judge_summaries(pair.method, table.summaries[pair.method], theirs, terms, tries=tries)
    ours = table.values[pair.method]
    if pair.goal is not None:
        return judge_goal(pair.method, ours, pair.goal, terms, tries=tries)
    return judge(pair.method, ours, table.values[pair.baseline], terms, tries=tries)


def _picture_table(
    request: NumbersRequest,
    table: Evidence,
    pairs: Sequence[ComparedPair],
    comparisons: Mapping[str, BaselineComparison],
) -> DecisionPicture | None:
    if not table.values:
        return None  # of printed means
    candidates = [pair.method for pair in pairs]
    return picture_runs(
        table,
        [pair.baseline for pair in pairs if pair.goal is None and pair.baseline not in candidates],
        candidates,
        comparisons,
        title=f"Verdict on {request.path.name}",
        higher=request.terms.higher,
        listed_by="rows" if request.path.is_file() and table.files == (request.path,) else "files",
        minimum_gain=request.terms.minimum_gain,
    )


def _describe_implausible(comparison: BaselineComparison, against: str) -> str | None:
    """State what to look at where an improvement is above every known one; a goal has no runs of which to tell."""
    if comparison.outcome != Outcome.KEEP or not comparison.n_baseline:
        return None
    reason = implausible_gain.describe_implausible_own_gain(
        comparison.gain, comparison.sigma, comparison.freedom, comparison.mean_baseline
    )
    return reason and f"{quote(comparison.name)} beside {quote(against)}: {reason}."


def _write(
    request: NumbersRequest,
    table: Evidence,
    source_text: str,
    pairs: Sequence[ComparedPair],
    lost_methods: set[str],
    reasons: dict[str, str],
    answers: dict[str, Answers],
    ledger: Ledger,
) -> VerdictTexts:
    metric = table.metric
    against = {pair.method: pair.baseline for pair in pairs}
    families = list(dict.fromkeys((pair.baseline, metric) for pair in pairs))
    tries = {baseline: ledger.count_tries(baseline, metric) for baseline, _ in families}
    comparisons = {
        pair.method: _judge(table, pair, request.terms, tries[pair.baseline])
        for pair in pairs
        if pair.method not in lost_methods and pair.method not in reasons
    }
    runs = {method: printed.n for method, printed in table.summaries.items()}
    runs |= {method: len(of_method) for method, of_method in table.runs.items()}
    sentences_of_others = [
        write_lost_sentence(name, table.lost[name], runs[name], against[name], len(table.lost.get(against[name], {})))
        for name in against
        if name in lost_methods
    ]
    sentences_of_others += [f"{quote(name)} cannot be judged: {why}" for name, why in reasons.items()]
    flagged = {
        method: reason
        for method, comparison in comparisons.items()
        if (reason := _describe_implausible(comparison, against[method]))
    }
    sentences_of_others += flagged.values()
    baseline = PREDECESSOR if request.chain else pairs[0].baseline
    tried = {name: ledgers.describe_tries(ledger, name, metric) for name, _ in families}
    dropped = sum(len(table.lost.get(method, {})) for method in table.methods if method not in lost_methods)
    left_out = (
        f" {format_count(dropped, 'run')} that diverged or crashed left out, as --allow-diverged allows."
        if dropped
        else ""
    )
    summary = (
        f"{source_text} from {quote(request.path.name)}: {format_count(len(runs), 'method')}, "
        f"{format_count(sum(runs.values()), 'run')}, metric {quote(metric)}.{left_out}"
    )
    first = write_headline(comparisons, baseline, metric, sentences_of_others, against=against, tries_text=tried)
    sentences = [
        write_sentence(each, against[method], metric, tries_text=tried) for method, each in comparisons.items()
    ]
    every = list(comparisons.values())
    outcomes = {method: each.outcome for method, each in comparisons.items()}
    if not request.accept_implausible:
        outcomes |= dict.fromkeys(flagged, Outcome.IMPLAUSIBLE)
    outcomes |= dict.fromkeys(lost_methods, Outcome.CRASHED) | dict.fromkeys(reasons, Outcome.CANNOT_BE_JUDGED)
    numbers = {
        "shape": "table",
        "metric": metric,
        "baseline": baseline,
        "against": against,
        "outcomes": {method: str(outcomes[method]) for method in against},
        "methods": {key: comparison_to_json(each) for key, each in comparisons.items()},
        "lost": {method: dict(seeds) for method, seeds in table.lost.items()},
        "unfinished": {method: dict(seeds) for method, seeds in table.unfinished.items()},
        "notes": [*table.notes, *table.told],
        "implausible": flagged,
    }
    return write_texts(
        request,
        ledger,
        families,
        [
            "# Verdict",
            first,
            write_list(sentences) if len(every) > 1 else "",
            *write_sections(every, baseline, source_text=" ".join([summary, *table.notes])),
        ],
        answers=answers,
        notes=table.told,
        limits=list_limits(every),
        numbers=numbers,
        outcomes=outcomes,
        picture=_picture_table(request, table, pairs, comparisons),
        arms=len(table.methods),
    )
