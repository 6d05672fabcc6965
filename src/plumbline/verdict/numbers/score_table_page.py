"""Writes the page of a table of methods and seeds: a sentence to quote, the evidence, the power, the limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from plumbline.core.formats import format_count, format_percent
from plumbline.verdict.comparison_terms import CLAIM, LOOP, POWER
from plumbline.verdict.formatting import format_freedom, format_p, format_value, join_with_and, quote, write_table
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.numbers.sentences import describe_direction, format_confidence, format_with_interval
from plumbline.verdict.numbers.summary_comparison import compute_rounded_p
from plumbline.verdict.power import compute_sigma_interval

#: Gains whose chance of being found is printed, in units of sigma.
GAINS = (1.0, 2.0, 3.0)

#: What of a table's verdict hangs on normal tails, as benchmarks/numbers_verdict_rates.md measured it.
TAILS = (
    "The test assumes that runs are independent and normal, and that a method which does nothing has the baseline's "
    "spread. What hangs on normal tails, where 2.5 % of methods that do nothing may be called better: with the heavy "
    "tails of Student's t with 3 degrees of freedom 2.3 % are with 3 seeds against 5, and 3.8 % with one against 5; "
    "with a tail on the better side alone 2.6 % and 7.5 % (benchmarks/numbers_verdict_rates.md)."
)


def write_sections(comparisons: Sequence[BaselineComparison], baseline: str, *, source_text: str) -> list[str]:
    """Write the page of a table from its evidence up to its ledger.

    Args:
        comparisons: all methods of a chain or against one baseline.
        baseline: what they were compared with, as text.
        source_text: sentences that say what was read from where.
    """
    if not comparisons:
        return ["## Evidence", source_text]
    return [
        "## Evidence",
        source_text,
        *write_tests(comparisons, baseline, "--paired"),
        describe_rounding(comparisons),
        "## Power",
        write_power(comparisons),
    ]


def write_tests(comparisons: Sequence[BaselineComparison], baseline: str, option: str) -> list[str]:
    """Write the deciding test with its table, and the other tests; `option`: what lets pairs of seeds decide."""
    tables = [
        describe_test(comparisons[0]),
        write_evidence(comparisons, baseline),
        "Also shown, not deciding:",
        write_other_tests(comparisons),
    ]
    return [*tables, describe_same_seeds(comparisons, option)]


#: The limits of a page on which every method crashed or diverged.
NO_VALUES = "That a run crashed or diverged says nothing about its values: nothing was compared."


def describe_test(comparison: BaselineComparison) -> str:
    """State which test decides, at which level, and how many tries it is corrected for."""
    terms = comparison.terms
    test = {
        "pooled t": "Student's t with sigma pooled over the seeds of the method and the baseline",
        "paired t": "the paired t over the seeds that both have; sigma is that of a difference",
    }.get(terms.test_of_gain, terms.test_of_gain)
    if comparison.plan == "goal":
        test = "the one-sample t of the seeds against the fixed value" if terms.sigma is None else terms.test_of_gain
    against = f" The required gain is more than {terms.minimum_gain:g}." if terms.minimum_gain > 0 else ""
    if terms.as_good_as:
        against = (
            f" A method is as good that is shown to be worse by less than {terms.as_good_as}, or has equal values."
        )
    gain = f"{terms.asked_gain:g}" if terms.asked_gain is not None else "2 sigma beyond the required gain"
    gain = "minus the margin" if terms.as_good_as else gain
    return (
        f"{describe_direction(terms)}; gains count upwards. What decides: {test}, one-sided; p times the ledger's "
        f"{format_count(comparison.tries, 'try', 'tries')} (Bonferroni) must be at most {terms.alpha:g}.{against} "
        f"Otherwise a method is ruled out if the upper bound of its gain is below {gain}, and else not decided. Two "
        f"levels are printed: {LOOP:g}, for a candidate of a loop that runs again what it keeps, and {CLAIM:g}, for a "
        "claim (the two-sided 0.05 of papers)."
    )


def write_evidence(comparisons: Sequence[BaselineComparison], baseline: str) -> str:
    """Write the table of the deciding test: a row a method, with its seeds, means, gain, p and verdict."""
    verdict = "as good" if comparisons[0].terms.as_good_as else "better"
    return write_table(
        {
            "method": lambda each: quote(each.name),
            "seeds / baseline's": lambda each: f"{each.n} / {each.n_baseline or 'fixed'}",
            "mean": lambda each: format_value(each.mean, each.sigma),
            f"mean of {quote(baseline)}": lambda each: format_value(each.mean_baseline, each.sigma),
            "sigma (degrees of freedom)": lambda each: f"{each.sigma:.3g} ({format_freedom(each.freedom)})",
            "gain": lambda each: format_value(each.gain, each.sigma),
            "z = gain / sigma": lambda each: f"{each.z:.2f}",
            "t": lambda each: f"{each.t:.2f}",
            "one-sided p": lambda each: format_p(each.p),
            "two-sided p": lambda each: format_p(each.p_two_sided),
            "corrected p": lambda each: format_p(each.p_corrected),
            f"{verdict} at {LOOP:g}, for a loop": lambda each: "yes" if each.p_corrected <= LOOP else "no",
            f"{verdict} at {CLAIM:g}, for a claim": lambda each: "yes" if each.p_corrected <= CLAIM else "no",
            f"gain's {format_confidence(comparisons[0].terms)} interval, corrected": lambda each: (
                f"{format_value(each.low, each.sigma)} to {format_value(each.high, each.sigma)}"
            ),
            "verdict": lambda each: str(each.outcome),
        },
        comparisons,
    )


def write_other_tests(comparisons: Sequence[BaselineComparison]) -> str:
    """Write the table of what decides nothing: the interval of sigma, the prediction test, p if sigma were known,
    Welch's p. Every p is one-sided.
    """
    return write_table(
        {
            "method": lambda each: quote(each.name),
            "sigma's interval, 95 %": lambda each: format_sigma_interval(each.sigma, each.freedom),
            "prediction t (baseline's sigma alone)": lambda each: (
                f"{each.prediction[0]:.2f}" if each.prediction else "none"
            ),
            "its one-sided p": lambda each: format_p(each.prediction[1]) if each.prediction else "none",
            "one-sided p if sigma were known": lambda each: format_p(each.p_face),
            "Welch's one-sided p": lambda each: format_p(each.welch.p_greater),
        },
        comparisons,
    )


def format_sigma_interval(sigma: float, freedom: float) -> str:
    """Write the 95 % interval of sigma; ``given`` where it is taken as known."""
    low, high = compute_sigma_interval(sigma, freedom)
    return f"{low:.2g} to {high:.2g}" if low < high else "given"


def describe_same_seeds(comparisons: Sequence[BaselineComparison], option: str) -> str:
    """State what the paired test finds where both sides have the same seeds.

    `option`: the option or key that lets it decide.
    """
    sentences = []
    for each in comparisons:
        if each.pairs is not None:
            pairs = f"{each.pairs.n} seeds were run with both"
            sentences.append(
                f"{quote(each.name)}: {pairs}; their differences have sigma {each.pairs.sigma:.3g}, paired "
                f"one-sided p = {format_p(each.pairs.p)}, better in {each.pairs.wins} of {each.pairs.n}"
            )
    if not sentences or comparisons[0].terms.paired:
        return ""
    choice = f"`{option}` makes the pairs decide; chosen after this page it is another try, which the ledger counts."
    return "\n".join(f"- {sentence}." for sentence in sentences) + f"\n\n{choice}"


def describe_rounding(comparisons: Sequence[BaselineComparison]) -> str:
    """State what hangs on the digits that were printed, where means and standard deviations are all that there is."""
    lines = []
    for each in comparisons:
        if (rounded_p := compute_rounded_p(each)) is None:
            continue
        low, high = format_p(rounded_p.low), format_p(rounded_p.high)
        effect = f"moves p between {low} and {high}" if low != high else f"leaves p at {low}"
        if rounded_p.others:
            effect += f", so that the verdict may be {join_with_and([f'*{word}*' for word in rounded_p.others])} too"
        divided = ""
        if each.terms.sigma is None:
            divided = (
                "; if the standard deviations divide by n and not by n - 1, as `numpy.std` does unless told otherwise, "
                f"p = {format_p(rounded_p.divided_by_n)}"
            )
        lines.append(f"- {quote(each.name)}: rounding of the printed digits {effect}{divided}.")
    if not lines:
        return ""
    return (
        "From means and standard deviations of n runs, as printed:\n\n"
        + "\n".join(lines)
        + "\n\nWhat needs the runs one by one cannot be computed from these: pairs of seeds, tests by item, a look at "
        "outliers."
    )


def write_power(comparisons: Sequence[BaselineComparison]) -> str:
    """Write the table of power: the smallest gain that the seeds find, chances of finding others, and seeds needed."""
    columns: dict[str, Callable[[BaselineComparison], str]] = {
        "method": lambda each: quote(each.name),
        f"smallest gain found with {format_percent(POWER)} chance, in sigma": lambda each: (
            f"{each.design.find_smallest_gain(POWER) + each.terms.minimum_gain / each.sigma:.1f}"
        ),
        "in the metric's units (as sigma is uncertain)": _format_resolved,
    }
    for gain in GAINS:
        columns[f"chance to find {gain:g} sigma"] = partial(_format_chance, gain)
    columns["seeds of each that would find the gain seen (as sigma is uncertain)"] = _format_seeds_needed
    return (
        write_table(columns, comparisons)
        + "\n\nChances are for this number of tries and, in units of sigma, exact; in the metric's units they hang on "
        "sigma, whose 95 % interval gives the ranges. A gain that was picked because it was seen is too large on "
        "average, so that the seeds it needs are too few. Seeds that are added after this page make another look, "
        "which the ledger counts and these numbers of seeds pay for."
    )


def _format_resolved(each: BaselineComparison) -> str:
    minimum, resolved = each.terms.minimum_gain, each.design.find_smallest_gain(POWER)
    low, high = (minimum + resolved * sigma for sigma in compute_sigma_interval(each.sigma, each.freedom))
    return format_with_interval(each.resolved, low, high, each.sigma)


def _format_chance(gain: float, each: BaselineComparison) -> str:
    return format_percent(each.design.power(gain - each.terms.minimum_gain / each.sigma))


def _format_seeds_needed(each: BaselineComparison) -> str:
    if each.gain <= each.terms.minimum_gain:
        return "none: no such gain was seen"
    ends = [each.seeds_for(each.gain, sigma=sigma) for sigma in compute_sigma_interval(each.sigma, each.freedom)]
    numbers = ["more than a million" if seeds is None else f"{seeds:,}" for seeds in (each.seeds_to_decide, *ends)]
    return numbers[0] if numbers[1] == numbers[2] else f"{numbers[0]} ({numbers[1]} to {numbers[2]})"


def list_limits(comparisons: Sequence[BaselineComparison]) -> list[str]:
    """List the sentences about what the verdict does not say and what it assumes."""
    if not comparisons:
        return [NO_VALUES]
    terms = comparisons[0].terms
    sentences = [
        "A verdict is about these runs, not about other data, scale or tuning. What was not put into the ledger is "
        "not corrected for, and whoever looks at numbers before their verdict has looked.",
        '"Ruled out above" a gain says nothing against a smaller one, and "not decided" nothing against any.',
        "Alpha, the minimum gain and the gain that would be worth having are as given when this page was made; the "
        "ledger does not record them, and the same numbers with others are not a new try.",
    ]
    if terms.sigma is not None:
        sentences.append(f"Sigma is {terms.sigma:g} as given by --sigma; the spread in the file was not used.")
    elif not terms.paired:
        sentences.append(TAILS)
        sentences += [
            f"{quote(each.name)}: Welch's test, which does not assume one sigma, gives a one-sided p = "
            f"{format_p(each.welch.p_greater)} before correction: on the other side of {terms.alpha:g} / "
            f"{each.tries} than p = {format_p(each.p)}. Compare the seeds of both."
            for each in comparisons
            if not math.isnan(each.welch.p_greater)
            and (each.welch.p_greater <= terms.alpha / each.tries) != (each.p <= terms.alpha / each.tries)
        ]
    for each in comparisons:
        if each.n == 1:
            sentences.append(f"{quote(each.name)} has one seed: its own spread is unknown.")
    return sentences
