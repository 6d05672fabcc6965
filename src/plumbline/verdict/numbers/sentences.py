"""Writes verdicts as sentences that can be quoted as they are: improves by, ruled out above, not decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from plumbline.core.formats import format_count
from plumbline.verdict import formatting
from plumbline.verdict.comparison_terms import POWER, TARGET_GAIN_SIGMAS, ComparisonTerms
from plumbline.verdict.formatting import format_percent, format_value, quote_name
from plumbline.verdict.judge import BaselineComparison, RunsNeeded
from plumbline.verdict.numbers.summary_comparison import rounded
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.seed_values import describe_seed

#: Methods of one verdict that the first sentence names.
NAMED = 6


#: Baseline -> the tries that p is multiplied by, and where they stand (`ledger.tries_in`).
TriesIn = Mapping[str, str]


def sentence(judged: BaselineComparison, baseline: str, metric: str, *, tried: TriesIn = MappingProxyType({})) -> str:
    """Write the verdict on one method in a sentence, to be quoted as it is.

    `tried`: the tries against the baseline, and where they stand; without it the sentence says their number alone.
    """
    terms, sigma = judged.terms, judged.sigma
    subject, gain = quote_name(judged.name), format_value(judged.gain, sigma)
    level = (
        f"{_interval(judged)}; {judged.z:.1f} {_unit(judged)}; {seeds(judged, baseline)}; "
        f"{_both_p(judged, tried.get(baseline))}{_rounding(judged)}"
    )
    asked = f"; required is more than {terms.minimum_gain:g}" if terms.minimum_gain else ""
    above = format_value(judged.high, sigma)
    if judged.outcome is Outcome.KEEP:
        claim = ""
        if terms.claimed_gain is not None and judged.high < terms.claimed_gain:
            claim = f", less than the {terms.claimed_gain:g} that is claimed"
        return f"{subject} improves {quote_name(metric)} by {gain}{claim} ({level}{asked})."
    seen = f"the gain seen is {gain} ({level}{asked})"
    if judged.outcome is Outcome.DISCARD:
        claim = f", and with it the claimed {terms.claimed_gain:g}" if terms.claimed_gain is not None else ""
        if judged.high < 0:
            return (
                f"{subject} is worse in {quote_name(metric)} by {format_value(-judged.high, sigma)} or more{claim}: "
                f"{seen}."
            )
        return f"{subject}: a gain in {quote_name(metric)} is ruled out above {above}{claim}: {seen}."
    more = more_runs(judged, baseline)
    return f"{subject} is not decided{more}. Of {quote_name(metric)}, {seen}; only gains above {above} are ruled out."


def confidence(terms: ComparisonTerms) -> str:
    """Write the level of the interval between the gain's bounds, which are one-sided: ``95 %`` at alpha 0.025."""
    return f"{100 * (1 - 2 * terms.alpha):.4g} %"


def _interval(judged: BaselineComparison) -> str:
    """The gain's interval with its level, which holds for all tries together, as Bonferroni makes it."""
    low, high = (format_value(end, judged.sigma) for end in (judged.low, judged.high))
    every = "both" if judged.tries == 2 else f"all {judged.tries:,}"
    together = f", {every} tries together," if judged.tries > 1 else ""
    return f"{confidence(judged.terms)} interval{together} {low} to {high}"


def _unit(judged: BaselineComparison) -> str:
    """What a gain in sigma is in: no z, which would be in standard errors. A sigma that was told is said to be."""
    unit = f"standard deviations of {'a difference' if judged.plan == 'pairs' else 'one run'}"
    told = judged.terms.sigma
    if told is None:
        return unit
    exact = ", which is taken as exact" if math.isinf(judged.freedom) else ""
    return f"{unit}, stated as {told:g}{exact}"


def _both_p(judged: BaselineComparison, tried: str | None) -> str:
    """The one-sided p, which decides, and the two-sided one of papers; of several tries, what they are corrected."""
    ps = (judged.p, judged.p_two_sided)
    said = "one-sided p = {}, two-sided {}".format(*map(formatting.format_p, ps))
    if judged.tries == 1:
        return said
    one, two = (formatting.format_p(min(1.0, judged.tries * p)) for p in ps)
    return f"{said}; corrected for {tried or f'{judged.tries} tries'}: {one} and {two}"


def seeds(judged: BaselineComparison, baseline: str) -> str:
    """Say how many seeds were compared with how many."""
    if judged.plan == "pairs":
        return f"{judged.n} pairs of seeds with {quote_name(baseline)}"
    if judged.plan == "goal":
        return f"{format_count(judged.n, 'seed')} against the fixed value {judged.mean_baseline:g}"
    return f"{format_count(judged.n, 'seed')} against {judged.n_baseline} of {quote_name(baseline)}"


def _rounding(judged: BaselineComparison) -> str:
    """Say how far a p from printed digits can be trusted; nothing of a p from the runs themselves."""
    if (by := rounded(judged)) is None:
        return ""
    low, high = (formatting.format_p(min(1.0, judged.tries * end)) for end in (by.low, by.high))
    which = "one-sided p" if judged.tries == 1 else "corrected one-sided p"
    said = "; from printed means and standard deviations"
    if low != high:
        said += f", whose rounding moves the {which} between {low} and {high}"
    return said + (", and with it the verdict" if by.others else "")


def p_of(p: float, corrected: float, tries: int, tried: str | None = None) -> str:
    """Write a p and, of several tries, the corrected one; `tried`: the tries, and where they stand."""
    said = f"p = {formatting.format_p(p)}"
    return said if tries == 1 else f"{said}, {formatting.format_p(corrected)} corrected for {tried or f'{tries} tries'}"


def more_runs(judged: BaselineComparison, baseline: str) -> str:
    """Say how many more runs would find what is asked after; nothing where they would be more than a million."""
    more = judged.runs_needed
    if more is None:
        return ""
    added = format_count(more.method, "more run") if more.method else ""
    if judged.plan == "pairs":
        added = format_count(more.method, "more pair")
    elif more.baseline:
        of_baseline = f"{more.baseline:,} of {quote_name(baseline)}"
        added = (
            f"{added} and {of_baseline}"
            if added
            else format_count(more.baseline, "more run") + f" of {quote_name(baseline)}"
        )
    return f": {added} would find {_gain(more, judged)} with {format_percent(POWER)} chance"


def _gain(more: RunsNeeded, judged: BaselineComparison) -> str:
    """A gain named in sigma is found with just that chance; one in the metric's units as sigma is."""
    beyond = " beyond the required gain" if judged.terms.minimum_gain else ""
    if more.in_sigma:
        return f"a gain of {TARGET_GAIN_SIGMAS:g} standard deviations{beyond}"
    span = (
        "" if more.low == more.high else f" ({_count(more.low)} to {_count(more.high)} of each, as sigma is uncertain)"
    )
    return f"a gain of {format_value(more.gain, judged.sigma)}{span}"


def _count(number: int | None) -> str:
    return "over a million" if number is None else f"{number:,}"


def lost_sentence(method: str, lost: Mapping[str, str], runs: int, baseline: str, lost_baseline: int) -> str:
    """Write the verdict on a method that lost more runs than the baseline did.

    Args:
        method: its name.
        lost: its seeds that diverged or crashed, with the word for it.
        runs: how many runs it had.
        baseline: the baseline's name.
        lost_baseline: how many the baseline lost.
    """
    words = [f"{describe_seed(seed)}: {word}" for seed, word in sorted(lost.items())]
    said = ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")
    than = f"{lost_baseline} of {quote_name(baseline)}" if lost_baseline else f"none of {quote_name(baseline)}"
    return (
        f"{quote_name(method)} crashed or diverged: {len(lost)} of its {format_count(runs, 'run')} "
        f"{'has' if len(lost) == 1 else 'have'} no value ({said}), and {than}. The others are not judged: to have "
        "finished selects them."
    )


def headline(
    judged: Mapping[str, BaselineComparison],
    baseline: str,
    metric: str,
    lost: Sequence[str] = (),
    *,
    against: Mapping[str, str] | None = None,
    tried: TriesIn = MappingProxyType({}),
) -> str:
    """Write the page's first sentence: the verdict on one method, or how many methods got which.

    Args:
        judged: the methods that were.
        baseline: what they were compared with.
        metric: its name.
        lost: a sentence for each method that crashed or diverged, or cannot be judged.
        against: what each was compared with, where that is not one baseline.
        tried: as of `sentence`.
    """
    if not judged:
        return " ".join(lost)
    if len(judged) == 1:
        (one,) = judged.values()
        return " ".join([sentence(one, (against or {}).get(one.name, baseline), metric, tried=tried), *lost])
    parts = []
    one = next(iter(judged.values()))
    for outcome, one_word, words in (
        (Outcome.KEEP, "improves", "improve"),
        (Outcome.DISCARD, "is ruled out", "are ruled out"),
        (Outcome.UNDECIDED, "is not decided", "are not decided"),
    ):
        names = [_short(each) for each in judged.values() if each.outcome is outcome]
        if names:
            more = f"; {len(names) - NAMED} more" if len(names) > NAMED else ""
            parts.append(f"{len(names)} {one_word if len(names) == 1 else words} ({'; '.join(names[:NAMED])}{more})")
    said = tried.get((against or {}).get(one.name, baseline)) or format_count(one.tries, "try", "tries")
    level = f"at one-sided {one.terms.alpha:g}, corrected for {said}{_rounding_of_all(judged.values())}"
    begin = f"Of {len(judged)} methods against {quote_name(baseline)} in {quote_name(metric)}"
    return " ".join([f"{begin}, {formatting.join_with_and(parts)}, {level}.", *lost])


def _rounding_of_all(every: Iterable[BaselineComparison]) -> str:
    """Say of printed digits how many verdicts hang on how they were rounded; nothing of the runs themselves."""
    found = [by for each in every if (by := rounded(each)) is not None]
    moved = sum(bool(by.others) for by in found)
    said = f", whose rounding moves {format_count(moved, 'verdict')}" if moved else ""
    return f", from printed means and standard deviations{said}" if found else ""


def _short(each: BaselineComparison) -> str:
    if each.outcome is Outcome.KEEP:
        return (
            f"{quote_name(each.name)} by {format_value(each.gain, each.sigma)}, p = "
            f"{formatting.format_p(each.p_corrected)}"
        )
    if each.outcome is Outcome.DISCARD:
        if each.high < 0:
            return f"{quote_name(each.name)}, worse by {format_value(-each.high, each.sigma)} or more"
        return f"{quote_name(each.name)} above {format_value(each.high, each.sigma)}"
    more = each.runs_needed
    return quote_name(each.name) + (f", {more.method + more.baseline:,} more runs" if more else "")


def direction(terms: ComparisonTerms) -> str:
    """Say whether higher or lower values are better."""
    return "Higher is better" if terms.higher else "Lower is better"


def interval_of(value: float, low: float, high: float, sigma: float) -> str:
    """Write a value with the interval that sigma's uncertainty gives it."""
    if math.isclose(low, high):
        return format_value(value, sigma)
    return f"{format_value(value, sigma)} ({format_value(low, sigma)} to {format_value(high, sigma)})"
