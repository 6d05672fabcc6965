"""Writes verdicts as sentences that can be quoted as they are: improves by, ruled out above, not decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from plumbline.core.formats import format_count, format_percent
from plumbline.verdict.comparison_terms import POWER, TARGET_GAIN_SIGMAS, ComparisonTerms
from plumbline.verdict.formatting import format_p, format_value, join_with_and, quote
from plumbline.verdict.judge import BaselineComparison, RunsNeeded
from plumbline.verdict.numbers.summary_comparison import compute_rounded_p
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.seed_values import describe_seed, name_runs

#: Methods of one verdict that the first sentence names.
NAMED = 6


#: Baseline -> the tries that p is multiplied by, and where they stand (`ledger.describe_tries`).
TriesIn = Mapping[str, str]


def write_sentence(
    comparison: BaselineComparison, baseline: str, metric: str, *, tries_text: TriesIn = MappingProxyType({})
) -> str:
    """Write the verdict on one method in a sentence, to be quoted as it is.

    `tries_text`: the tries against the baseline, and where they stand; without it the sentence says their number alone.
    """
    terms, sigma = comparison.terms, comparison.sigma
    subject, gain = quote(comparison.name), format_value(comparison.gain, sigma)
    level = (
        f"{_format_interval(comparison)}; {comparison.z:.1f} {_name_unit(comparison)}; "
        f"{describe_seeds(comparison, baseline)}; "
        f"{_format_both_p(comparison, tries_text.get(baseline))}{_describe_rounding(comparison)}"
    )
    required = f"; required is more than {terms.minimum_gain:g}" if terms.minimum_gain > 0 else ""
    high = format_value(comparison.high, sigma)
    if comparison.outcome is Outcome.KEEP:
        claim = ""
        if terms.claimed_gain is not None and comparison.high < terms.claimed_gain:
            claim = f", less than the {terms.claimed_gain:g} that is claimed"
        return f"{subject} improves {quote(metric)} by {gain}{claim} ({level}{required})."
    gain_seen = f"the gain seen is {gain} ({level}{required})"
    if terms.as_good_as:
        return _write_as_good(comparison, baseline, metric, gain_seen)
    if comparison.outcome is Outcome.DISCARD:
        claim = f", and with it the claimed {terms.claimed_gain:g}" if terms.claimed_gain is not None else ""
        if comparison.high < 0:
            return (
                f"{subject} is worse in {quote(metric)} by {format_value(-comparison.high, sigma)} or "
                f"more{claim}: {gain_seen}."
            )
        return f"{subject}: a gain in {quote(metric)} is ruled out above {high}{claim}: {gain_seen}."
    hint = describe_runs_needed(comparison, baseline)
    return f"{subject} is not decided{hint}. Of {quote(metric)}, {gain_seen}; only gains above {high} are ruled out."


def _write_as_good(comparison: BaselineComparison, baseline: str, metric: str, gain_seen: str) -> str:
    terms, subject = comparison.terms, quote(comparison.name)
    in_sigmas = f" ({terms.as_good_as})" if terms.margin_sigmas is not None else ""
    baseline_text = quote(baseline) if comparison.n_baseline else f"the value {comparison.mean_baseline:g}"
    within = f"{baseline_text} in {quote(metric)} by a margin of {-terms.minimum_gain:.3g}{in_sigmas}"
    if comparison.has_equal_values:
        equal = f"its {comparison.n} values are equal to all digits"
        return f"{subject} is as good as {within}: {equal} to those of the same seeds."
    if comparison.outcome is Outcome.AS_GOOD:
        return f"{subject} is as good as {within}: {gain_seen}."
    if comparison.outcome is Outcome.DISCARD:
        return f"{subject} is worse than {within} or more: {gain_seen}."
    hint = describe_runs_needed(comparison, baseline)
    return f"{subject} is not decided: whether it is as good as {within}{hint}. Of it, {gain_seen}."


def format_confidence(terms: ComparisonTerms) -> str:
    """Write the level of the interval between the gain's bounds, which are one-sided: ``95 %`` at alpha 0.025."""
    return f"{100 * (1 - 2 * terms.alpha):.4g} %"


def _format_interval(comparison: BaselineComparison) -> str:
    """The gain's interval with its level, which holds for all tries together, as Bonferroni makes it."""
    low, high = (format_value(end, comparison.sigma) for end in (comparison.low, comparison.high))
    every = "both" if comparison.tries == 2 else f"all {comparison.tries:,}"
    together = f", {every} tries together," if comparison.tries > 1 else ""
    return f"{format_confidence(comparison.terms)} interval{together} {low} to {high}"


def _name_unit(comparison: BaselineComparison) -> str:
    """What a gain in sigma is in: no z, which would be in standard errors. A sigma that was told is said to be."""
    unit = f"standard deviations of {'a difference' if comparison.plan == 'pairs' else 'one run'}"
    sigma = comparison.terms.sigma
    if sigma is None:
        return unit
    exact = ", which is taken as exact" if math.isinf(comparison.freedom) else ""
    return f"{unit}, stated as {sigma:g}{exact}"


def _format_both_p(comparison: BaselineComparison, tries_text: str | None) -> str:
    """The one-sided p, which decides, and the two-sided one of papers; of several tries, what they are corrected."""
    ps = (comparison.p, comparison.p_two_sided)
    text = "one-sided p = {}, two-sided {}".format(*map(format_p, ps))
    if comparison.tries == 1:
        return text
    one_sided, two_sided = (format_p(min(1.0, comparison.tries * p)) for p in ps)
    return f"{text}; corrected for {tries_text or f'{comparison.tries} tries'}: {one_sided} and {two_sided}"


def describe_seeds(comparison: BaselineComparison, baseline: str) -> str:
    """State how many seeds (runs, where the source has no seeds) were compared with how many."""
    if comparison.plan == "pairs":
        return f"{comparison.n} pairs of seeds with {quote(baseline)}"
    count = format_count(comparison.n, name_runs(comparison.method, comparison.baseline))
    if comparison.plan == "goal":
        return f"{count} against the fixed value {comparison.mean_baseline:g}"
    return f"{count} against {comparison.n_baseline} of {quote(baseline)}"


def _describe_rounding(comparison: BaselineComparison) -> str:
    """State how far a p from printed digits can be trusted; nothing of a p from the runs themselves."""
    if (rounded_p := compute_rounded_p(comparison)) is None:
        return ""
    low, high = (format_p(min(1.0, comparison.tries * end)) for end in (rounded_p.low, rounded_p.high))
    which_p = "one-sided p" if comparison.tries == 1 else "corrected one-sided p"
    text = "; from printed means and standard deviations"
    if low != high:
        text += f", whose rounding moves the {which_p} between {low} and {high}"
    return text + (", and with it the verdict" if rounded_p.others else "")


def write_p(p: float, corrected: float, tries: int, tries_text: str | None = None) -> str:
    """Write a p and, of several tries, the corrected one; `tries_text`: the tries, and where they stand."""
    text = f"p = {format_p(p)}"
    return text if tries == 1 else f"{text}, {format_p(corrected)} corrected for {tries_text or f'{tries} tries'}"


def describe_runs_needed(comparison: BaselineComparison, baseline: str) -> str:
    """State how many more runs would find what is in question; nothing where they would be more than a million."""
    runs = comparison.runs_needed
    if runs is None:
        return ""
    added = format_count(runs.method, "more run") if runs.method else ""
    if comparison.plan == "pairs":
        added = format_count(runs.method, "more pair")
    elif runs.baseline:
        of_baseline = f"{runs.baseline:,} of {quote(baseline)}"
        added = (
            f"{added} and {of_baseline}"
            if added
            else format_count(runs.baseline, "more run") + f" of {quote(baseline)}"
        )
    finds = "show" if comparison.terms.as_good_as else "find"
    return f": {added} would {finds} {_describe_gain(runs, comparison)} with {format_percent(POWER)} chance"


def _describe_gain(runs: RunsNeeded, comparison: BaselineComparison) -> str:
    """A gain named in sigma is found with just that chance; one in the metric's units as sigma is."""
    if comparison.terms.as_good_as:
        return "that a method that does nothing is as good"
    minimum = " beyond the required gain" if comparison.terms.minimum_gain else ""
    if runs.in_sigma:
        return f"a gain of {TARGET_GAIN_SIGMAS:g} standard deviations{minimum}"
    span = (
        ""
        if runs.low == runs.high
        else f" ({_format_number(runs.low)} to {_format_number(runs.high)} of each, as sigma is uncertain)"
    )
    return f"a gain of {format_value(runs.gain, comparison.sigma)}{span}"


def _format_number(number: int | None) -> str:
    return "over a million" if number is None else f"{number:,}"


def write_lost_sentence(method: str, seeds: Mapping[str, str], runs: int, baseline: str, lost_baseline: int) -> str:
    """Write the verdict on a method that lost more runs than the baseline did.

    Args:
        method: its name.
        seeds: those that diverged or crashed, with the word for it.
        runs: how many runs it had.
        baseline: the baseline's name.
        lost_baseline: how many the baseline lost.
    """
    seed_phrases = [f"{describe_seed(seed)}: {word}" for seed, word in sorted(seeds.items())]
    phrases = ", ".join(seed_phrases[:8]) + (f" and {len(seed_phrases) - 8} more" if len(seed_phrases) > 8 else "")
    than = f"{lost_baseline} of {quote(baseline)}" if lost_baseline else f"none of {quote(baseline)}"
    return (
        f"{quote(method)} crashed or diverged: {len(seeds)} of its {format_count(runs, 'run')} "
        f"{'has' if len(seeds) == 1 else 'have'} no value ({phrases}), and {than}. The others are not judged: to have "
        "finished selects them."
    )


def write_headline(
    comparisons: Mapping[str, BaselineComparison],
    baseline: str,
    metric: str,
    sentences: Sequence[str] = (),
    *,
    against: Mapping[str, str] | None = None,
    tries_text: TriesIn = MappingProxyType({}),
) -> str:
    """Write the page's first sentence: the verdict on one method, or how many methods got which.

    Args:
        comparisons: the methods that were judged.
        baseline: what they were compared with.
        metric: its name.
        sentences: one for each method that crashed or diverged, or cannot be judged.
        against: what each was compared with, where that is not one baseline.
        tries_text: as of `write_sentence`.
    """
    if not comparisons:
        return " ".join(sentences)
    if len(comparisons) == 1:
        (first,) = comparisons.values()
        return " ".join(
            [
                write_sentence(first, (against or {}).get(first.name, baseline), metric, tries_text=tries_text),
                *sentences,
            ]
        )
    parts = []
    first = next(iter(comparisons.values()))
    for outcome, singular, plural in (
        (Outcome.KEEP, "improves", "improve"),
        (Outcome.AS_GOOD, "is as good", "are as good"),
        (Outcome.DISCARD, "is ruled out", "are ruled out"),
        (Outcome.UNDECIDED, "is not decided", "are not decided"),
    ):
        names = [_shorten(each) for each in comparisons.values() if each.outcome is outcome]
        if names:
            tail = f"; {len(names) - NAMED} more" if len(names) > NAMED else ""
            parts.append(f"{len(names)} {singular if len(names) == 1 else plural} ({'; '.join(names[:NAMED])}{tail})")
    tries = tries_text.get((against or {}).get(first.name, baseline)) or format_count(first.tries, "try", "tries")
    level = (
        f"at one-sided {first.terms.alpha:g}, corrected for {tries}{_describe_rounding_of_all(comparisons.values())}"
    )
    begin = f"Of {len(comparisons)} methods against {quote(baseline)} in {quote(metric)}"
    return " ".join([f"{begin}, {join_with_and(parts)}, {level}.", *sentences])


def _describe_rounding_of_all(comparisons: Iterable[BaselineComparison]) -> str:
    """State how many verdicts from printed digits hang on their rounding; empty for runs themselves."""
    rounded_ps = [rounded_p for each in comparisons if (rounded_p := compute_rounded_p(each)) is not None]
    changed = sum(bool(rounded_p.others) for rounded_p in rounded_ps)
    text = f", whose rounding moves {format_count(changed, 'verdict')}" if changed else ""
    return f", from printed means and standard deviations{text}" if rounded_ps else ""


def _shorten(each: BaselineComparison) -> str:
    if each.outcome is Outcome.KEEP:
        return f"{quote(each.name)} by {format_value(each.gain, each.sigma)}, p = {format_p(each.p_corrected)}"
    if each.terms.as_good_as and each.outcome is not Outcome.UNDECIDED:
        margin = f"a margin of {-each.terms.minimum_gain:.3g}"
        way = "by" if each.outcome is Outcome.AS_GOOD else "worse by more than"
        if each.has_equal_values:
            return f"{quote(each.name)}, whose values are equal to all digits"
        return f"{quote(each.name)} {way} {margin}, p = {format_p(each.p_corrected)}"
    if each.outcome is Outcome.DISCARD:
        if each.high < 0:
            return f"{quote(each.name)}, worse by {format_value(-each.high, each.sigma)} or more"
        return f"{quote(each.name)} above {format_value(each.high, each.sigma)}"
    runs = each.runs_needed
    return quote(each.name) + (f", {runs.method + runs.baseline:,} more runs" if runs else "")


def describe_direction(terms: ComparisonTerms) -> str:
    """State whether higher or lower values are better."""
    return "Higher is better" if terms.higher else "Lower is better"


def format_with_interval(value: float, low: float, high: float, sigma: float) -> str:
    """Write a value with the interval that sigma's uncertainty gives it."""
    if math.isclose(low, high):
        return format_value(value, sigma)
    return f"{format_value(value, sigma)} ({format_value(low, sigma)} to {format_value(high, sigma)})"
