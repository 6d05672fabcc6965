"""Writes the page of a table of methods and seeds: a sentence to quote, the evidence, the power, the limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from plumbline.experiment import formatting
from plumbline.experiment.comparison_terms import POWER, ComparisonTerms
from plumbline.experiment.formatting import counted, fixed, grid, name, percent
from plumbline.experiment.judge import BaselineComparison, MethodVerdict, sigma_interval

#: Gains whose chance of being found is printed, in units of sigma.
GAINS = (1.0, 2.0, 3.0)


def sentence(judged: BaselineComparison, baseline: str, metric: str) -> str:
    """Write the verdict on one method in a sentence, to be quoted as it is."""
    terms, sigma = judged.terms, judged.sigma
    seeds = f"{judged.n} pairs of seeds with {name(baseline)}"
    if not terms.paired:
        seeds = f"{counted(judged.n, 'seed')} against {judged.n_baseline} of {name(baseline)}"
    gain = fixed(judged.gain, sigma)
    asked = f" more than {terms.minimum_gain:g}" if terms.minimum_gain else ""
    level = f"p = {formatting.p(judged.p)}"
    if judged.tries > 1:
        level += f", {formatting.p(judged.p_corrected)} corrected for {judged.tries} tries"
    seen = f"the gain of {gain} in {name(metric)} is {judged.z:.1f} sigma ({level})"
    if judged.outcome is MethodVerdict.SURVIVES:
        claim = f", less than the {terms.claimed_gain:g} that is claimed" if _below_claim(judged) else ""
        return (
            f"{name(judged.name)} survives at p = {formatting.p(judged.p_corrected)}, corrected for "
            f"{counted(judged.tries, 'try', 'tries')}: with {seeds} it "
            f"{formatting.moved(judged.gain, metric, sigma, higher=terms.higher)} ({judged.z:.1f} sigma"
            f"{asked and f'; required is{asked}'}), between {fixed(judged.low, sigma)} and "
            f"{fixed(judged.high, sigma)}{claim}."
        )
    if judged.outcome is MethodVerdict.OPEN:
        claimed, would = terms.claimed_gain, ""
        if claimed is not None:
            would = (
                f"; the {claimed:g} that is claimed is not ruled out, only what is above {fixed(judged.high, sigma)}"
            )
        if needed := judged.seeds_to_decide if claimed is None else judged.seeds_for(claimed):
            would += f"; {needed} of each would find a gain of that size"
        return f"{name(judged.name)} cannot be decided with {seeds}: {seen}{asked and f', required is{asked}'}{would}."
    claim = "" if terms.claimed_gain is None else f", and the claimed {terms.claimed_gain:g} is ruled out"
    if judged.t < 0 and judged.p_corrected <= terms.alpha:
        claim += ", and it is worse" if not asked else f", and it is worse than {terms.minimum_gain:g} better"
    return (
        f"{name(judged.name)} does not survive: with {seeds} {seen}{asked and f', required is{asked}'}{claim}; "
        f"gains above {fixed(judged.high, sigma)} are ruled out, and from {fixed(judged.resolved, sigma)} on these "
        f"seeds would have found one with {percent(POWER)} chance."
    )


def headline(judged: Mapping[str, BaselineComparison], baseline: str, metric: str) -> str:
    """Write the page's first sentence: the verdict on one method, or how many methods got which."""
    if len(judged) == 1:
        return sentence(next(iter(judged.values())), baseline, metric)
    parts = []
    one = next(iter(judged.values()))
    for outcome, verb, more in (
        (MethodVerdict.SURVIVES, "survives", "survive"),
        (MethodVerdict.FAILS, "does not survive", "do not survive"),
        (MethodVerdict.OPEN, "cannot be decided with these seeds", "cannot be decided with these seeds"),
    ):
        names = [
            name(each.name) + (f", p = {formatting.p(each.p_corrected)}" if outcome is MethodVerdict.SURVIVES else "")
            for each in judged.values()
            if each.outcome is outcome
        ]
        if names:
            parts.append(f"{len(names)} {verb if len(names) == 1 else more} ({'; '.join(names)})")
    level = f"at {one.terms.alpha:g}, corrected for {counted(one.tries, 'try', 'tries')}"
    return f"Of {len(judged)} methods against {name(baseline)} in {name(metric)}, {formatting.listed(parts)}, {level}."


def _below_claim(judged: BaselineComparison) -> bool:
    return judged.terms.claimed_gain is not None and judged.high < judged.terms.claimed_gain


def table_page(judged: Mapping[str, BaselineComparison], baseline: str, metric: str, *, read: str, ledger: str) -> str:
    """Write the whole page of a table but its last section, how to repeat it.

    Args:
        read: a sentence that says what was read from where.
        ledger: the section about the ledger.
    """
    every = list(judged.values())
    terms = every[0].terms
    sections = [
        "# Verdict",
        headline(judged, baseline, metric),
        *(["\n".join(f"- {sentence(each, baseline, metric)}" for each in every)] if len(every) > 1 else []),
        "## Evidence",
        f"{read} {decides(every[0])}",
        evidence(every, baseline),
        "Also shown, not deciding:",
        beside(every),
        same_seeds(every),
        "## Power",
        power(every),
        "## Ledger",
        ledger,
        "## Limits",
        "\n".join(f"- {limit}" for limit in limits(every, terms)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def direction(terms: ComparisonTerms) -> str:
    """Say whether higher or lower values are better."""
    return "Higher is better" if terms.higher else "Lower is better"


def decides(judged: BaselineComparison) -> str:
    """Say which test decides, at which level, and how many tries it is corrected for."""
    terms = judged.terms
    test = {
        "pooled t": "Student's t, two-sided, with sigma pooled over the seeds of the method and the baseline",
        "paired t": "the paired t, two-sided, over the seeds that both have; sigma is that of a difference",
    }.get(terms.test, f"{terms.test}, two-sided")
    against = f" The required gain is more than {terms.minimum_gain:g}." if terms.minimum_gain else ""
    return (
        f"{direction(terms)}; gains count upwards. What decides: {test}; p times the ledger's "
        f"{counted(judged.tries, 'try', 'tries')} (Bonferroni) must be at most {terms.alpha:g}.{against}"
    )


def evidence(every: Sequence[BaselineComparison], baseline: str) -> str:
    """Write the table of the deciding test: a row a method, with its seeds, means, gain, p and verdict."""
    rows = [
        (
            name(each.name),
            f"{each.n} / {each.n_baseline}",
            fixed(each.mean, each.sigma),
            fixed(each.mean_baseline, each.sigma),
            f"{each.sigma:.3g} ({formatting.freedom(each.freedom)})",
            fixed(each.gain, each.sigma),
            f"{each.z:.2f}",
            f"{each.t:.2f}",
            formatting.p(each.p),
            formatting.p(each.p_corrected),
            f"{fixed(each.low, each.sigma)} to {fixed(each.high, each.sigma)}",
            str(each.outcome),
        )
        for each in every
    ]
    columns = ["method", "seeds / baseline's", "mean", f"mean of {name(baseline)}", "sigma (degrees of freedom)"]
    columns += ["gain", "z = gain / sigma", "t", "p", "corrected p", "gain's interval, corrected", "verdict"]
    return grid(columns, rows)


def beside(every: Sequence[BaselineComparison]) -> str:
    """Write the table of what decides nothing: the interval of sigma, the prediction test, p if sigma were known,
    Welch's p.
    """
    rows = []
    for each in every:
        low, high = sigma_interval(each.sigma, each.freedom)
        t, p = each.prediction or (math.nan, math.nan)
        rows.append(
            (
                name(each.name),
                f"{low:.2g} to {high:.2g}" if low < high else "given",
                f"{t:.2f}" if each.prediction else "none",
                formatting.p(p),
                formatting.p(each.p_face),
                formatting.p(each.welch.p),
            )
        )
    columns = ("method", "sigma's interval, 95 %", "prediction t (baseline's sigma alone)", "its p")
    return grid((*columns, "p if sigma were known", "Welch's p"), rows)


def same_seeds(every: Sequence[BaselineComparison], spelt: str = "--paired") -> str:
    """Say what the paired test finds where both sides have the same seeds.

    `spelt`: the option or key that lets it decide.
    """
    said = []
    for each in every:
        if each.pairs is not None:
            pairs = f"{each.pairs.n} seeds were run with both"
            said.append(
                f"{name(each.name)}: {pairs}; their differences have sigma {each.pairs.sigma:.3g}, paired p = "
                f"{formatting.p(each.pairs.p)}, better in {each.pairs.wins} of {each.pairs.n}"
            )
    if not said or every[0].terms.paired:
        return ""
    choice = f"`{spelt}` makes the pairs decide; chosen after this page it is another try, which the ledger counts."
    return "\n".join(f"- {one}." for one in said) + f"\n\n{choice}"


def power(every: Sequence[BaselineComparison]) -> str:
    """Write the table of power: the smallest gain that the seeds find, chances of finding others, and seeds needed."""
    rows = []
    for each in every:
        asked = each.terms.minimum_gain
        needed = each.seeds_to_decide
        seen = "more than a million" if each.gain > asked else "none: no such gain was seen"
        rows.append(
            (
                name(each.name),
                fixed(each.resolved, each.sigma),
                f"{each.resolved / each.sigma:.1f}",
                *(percent(each.design.power(gain - asked / each.sigma)) for gain in GAINS),
                "yes" if each.gain >= each.resolved else "no",
                f"{needed:,}" if needed else seen,
            )
        )
    columns = ["method", f"smallest gain found with {percent(POWER)} chance", "in sigma"]
    columns += [f"chance to find {gain:g} sigma" for gain in GAINS]
    columns += ["the observed gain reaches it", "seeds of each that would find the observed gain"]
    return (
        grid(columns, rows)
        + "\n\nChances are for this number of tries and, in units of sigma, exact; in the metric's units they take "
        "sigma as it was estimated. A gain that was picked because it was seen is too large on average, so that the "
        "seeds it needs are too few. Seeds that are added after this page make another look, which the ledger counts."
    )


def limits(every: Sequence[BaselineComparison], terms: ComparisonTerms) -> list[str]:
    """List the sentences about what the verdict does not say and what it assumes."""
    limits = [
        "A verdict is about these runs, not about other data, scale or tuning. What was not put into the ledger is "
        "not corrected for, and whoever looks at numbers before their verdict has looked.",
        '"Does not survive" says that these runs do not show a gain, not that there is none: see what is ruled out.',
        "Alpha and the minimum gain are as given when this page was made; the ledger does not record them, and "
        "the same numbers with others are not a new try.",
    ]
    if terms.sigma is not None:
        limits.append(f"Sigma is {terms.sigma:g} as given by --sigma; the spread in the file was not used.")
    elif not terms.paired:
        limits.append(
            "The test assumes that runs are independent and normal, and that a method which does nothing has the "
            "baseline's spread."
        )
        limits += [
            f"{name(each.name)}: Welch's test, which does not assume one sigma, gives p = {formatting.p(each.welch.p)} "
            f"before correction: on the other side of {terms.alpha:g} / {each.tries} than p = {formatting.p(each.p)}. "
            "Compare the seeds of both."
            for each in every
            if not math.isnan(each.welch.p)
            and (each.welch.p <= terms.alpha / each.tries) != (each.p <= terms.alpha / each.tries)
        ]
    for each in every:
        if each.n == 1:
            limits.append(f"{name(each.name)} has one seed: its own spread is unknown.")
    return limits
