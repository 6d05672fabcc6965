"""Settles by how much a candidate may be worse and still be as good as its baseline, and how many runs show that.

The null hypothesis is gain <= -margin, and the boundary is that of every other try. A margin in sigma is of the bank's
sigma: it becomes a number, and stands in the ledger, before the candidate's first run.

Before the test both arms are compared at the same seeds, to all digits: the cheapest evidence. A refactor, a kernel or
a flag that does nothing often computes the same numbers. The first seed at which the values differ ends that, and its
run is used for nothing else: the test has seeds that no run of the bank has.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from plumbline.core.errors import PlumblineError, UsageError
from plumbline.core.formats import format_percent
from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.stats.sequential import SequentialDesign, compute_characteristics
from plumbline.verdict.decision.experiment import BANK, BASELINE, ArmRun, Decision, ExperimentQuestion, ExperimentTerms
from plumbline.verdict.decision.loop import Experiment
from plumbline.verdict.ledger import Ledger
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.power import ComparisonDesign, count_seeds
from plumbline.verdict.seed_values import ACCIDENT, compute_accident

#: What runs at the bank's seeds are for, as the bank keeps it.
EQUAL = "equal"

#: The share of changes that do nothing which futility may discard, where these are what is not to be missed.
FUTILITY = 0.02
#: With less chance to accept a change that does nothing, runs are not begun unless their number was named; and the
#: chance that the proposed number has.
LEAST_CHANCE, PROPOSED_CHANCE = 0.8, 0.98
#: What is left of it, since the margin is of a sigma that is estimated (benchmarks/other_questions.md).
_SURE_CHANCE = 0.95
#: The chance of the fresh runs to agree with an acceptance of a change that does nothing.
_FRESH_CHANCE = 0.99
#: A look after each run needs so many times the runs of one test after the last (at margins of 0.6 to 3 sigma).
_COST_OF_LOOKS = 1.2
#: More runs of each arm are not proposed.
MOST_PROPOSED = 100

_MARGIN = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)\s*(sigmas?)?", re.IGNORECASE)
_RULE = "as good within"


@dataclass(frozen=True, slots=True)
class Margin:
    """A margin as it was requested: in sigma of one run, or in the metric's units."""

    size: float
    in_sigmas: bool

    def __str__(self) -> str:
        return f"{self.size:g}{' sigma' if self.in_sigmas else ''}"


def parse_margin(text: str) -> Margin:
    """Read a margin: `0.01`, in the metric's units, or `1sigma`.

    Raises:
        UsageError: it is neither, or not above 0.
    """
    match = _MARGIN.fullmatch(text.strip())
    size = float(match[1]) if match else math.nan
    if match is None or not 0 < size < math.inf:
        raise UsageError(f"--as-good-as {text!r}: write a margin above 0: 0.01, in the metric's units, or 1sigma")
    return Margin(size, bool(match[2]))


def write_margin_rule(question: ExperimentQuestion) -> str:
    """Write the margin as the ledger's rule has it; empty for a question after a gain."""
    return f", {_RULE} {question.as_good_as} ({-question.minimum_gain:g})" if question.as_good_as else ""


def settle_margin(question: ExperimentQuestion, bank: Sequence[float], ledger: Ledger) -> ExperimentQuestion:
    """Settle the margin of a question in the metric's units, and what follows from it: which gain is not to be missed,
    and how many fresh runs there are.

    Args:
        question: has a margin as it was requested (`as_good_as`).
        bank: values of the baseline's runs; sigma is that of the first `question.bank`, so that later ones change
            nothing. What the ledger has of this very try already stays.
        ledger: of the try.

    Raises:
        PlumblineError: the bank has no spread.
    """
    margin = parse_margin(question.as_good_as)
    pattern = re.compile(rf"{_RULE} {re.escape(question.as_good_as)} \((\S+)\), worth (\S+) sigma")
    entries = (entry for entry in ledger.entries if entry.is_try and entry.name == question.name)
    if settled := next((match for entry in entries if (match := pattern.search(entry.test))), None):
        units, sigmas = map(float, settled.groups())
    else:
        sigma = statistics.stdev(bank[: question.bank])
        if not sigma > 0:
            raise PlumblineError(
                f"--as-good-as {margin}: all runs of {question.baseline} have one value, so that there is no sigma: "
                "does the seed reach the trainer?"
            )
        # As the ledger writes them, so that a try that is continued has the same.
        units = float(f"{margin.size * sigma if margin.in_sigmas else margin.size:g}")
        sigmas = float(f"{margin.size if margin.in_sigmas else margin.size / sigma:g}")
    fresh = max(question.fresh_runs, count_fresh_runs(question.bank, sigmas)) if question.fresh_runs else 0
    return replace(question, minimum_gain=-units, target_gain_sigmas=sigmas, fresh_runs=fresh)


def count_fresh_runs(bank: int, margin_sigmas: float) -> int:
    """Count the fresh runs of each arm that confirm nearly every change that does nothing; the bank's at most."""
    for runs in range(2, bank):
        design = ComparisonDesign(math.sqrt(2 / runs), 2 * runs - 2, FRESH_LEVEL)
        if design.power(margin_sigmas) >= _FRESH_CHANCE:
            return runs
    return bank


@cache
def compute_chance(bank: int, most: int, alpha: float, margin_sigmas: float) -> float:
    """Compute the chance that a change that does nothing is called as good."""
    design = SequentialDesign(
        bank=bank,
        most=most,
        alpha=alpha,
        first_keep=min(2, most),
        target_gain_sigmas=margin_sigmas,
        futility=FUTILITY,
    )
    return compute_characteristics(design, margin_sigmas).kept


def propose_runs(alpha: float, margin_sigmas: float) -> int | None:
    """Find how many runs of each arm, at most, accept nearly every change that does nothing; None above a hundred."""
    fixed = count_seeds(margin_sigmas, 1.0, ComparisonDesign(1.0, 2.0, alpha), PROPOSED_CHANCE)
    runs = MOST_PROPOSED + 1 if fixed is None else math.ceil(_COST_OF_LOOKS * fixed) + 1
    return runs if runs <= MOST_PROPOSED else None


def describe_chance(bank: int, most: int, alpha: float, margin_sigmas: float) -> str:
    """State how often these runs accept a change that does nothing, and which number does nearly always."""
    chance = compute_chance(bank, most, alpha, margin_sigmas)
    text = (
        f"by {bank} runs of the baseline and at most {most} of the candidate, some {format_percent(chance)} of changes "
        f"that do nothing are called as good by a margin of {margin_sigmas:.3g} sigma"
    )
    if chance >= PROPOSED_CHANCE - 0.01:
        return text
    if (runs := propose_runs(alpha, margin_sigmas)) is None:
        return f"{text}; {MOST_PROPOSED} of each are too few for nearly all: a wider margin needs fewer"
    return f"{text}; --baseline-runs {runs} --max-runs {runs} makes it some {format_percent(_SURE_CHANCE)}"


def describe_chance_of(terms: ExperimentTerms) -> str:
    """State of settled terms how often their runs accept a change that does nothing."""
    assert terms.target_gain_sigmas is not None
    return describe_chance(terms.design.bank, terms.design.most, terms.alpha, terms.target_gain_sigmas)


def explain_too_few_runs(question: ExperimentQuestion) -> str:
    """State why no run of the candidate is worth it, with the remedy; empty if they are, or their number was named."""
    assert question.target_gain_sigmas is not None  # settled
    sizes = (question.bank, question.most, question.alpha, question.target_gain_sigmas)
    if question.sizes_named or compute_chance(*sizes) >= LEAST_CHANCE:
        return ""
    return f"{describe_chance(*sizes)} (--max-runs {question.most} begins them all the same)"


def decide_by_equal_seeds(experiment: Experiment) -> Decision | None:
    """Decide that the candidate is as good where every value at a seed of the bank is the baseline's, to all digits.

    The runs then belong to the bank of the candidate, which has no others.

    Returns:
        None where a value differs, or where so few digits are printed that equal values say nothing.
    """
    terms, trainer, bank = experiment.terms, experiment.trainer, experiment.bank
    seeds = [seed for arm, seed in experiment.plan.steps[0][0] if arm == BASELINE][:BANK]
    baseline = [run for seed in seeds if (run := experiment.find_run(BASELINE, seed)) is not None and run.has_value]
    values = [run.value for run in baseline if run.value is not None]
    if len(values) < len(seeds) or compute_accident(values) > ACCIDENT:
        return None
    method, runs = trainer.method(terms.candidate), list[ArmRun]()
    for seed, value in zip(seeds, values):
        run = experiment.find_run(terms.candidate, seed)
        if run is None:
            (run,) = trainer.run([(terms.candidate, seed)])
            bank.append(trainer.group, method, run, EQUAL)
        if run.value != value or run.fingerprint != baseline[0].fingerprint:
            experiment.tell(f"{terms.candidate}, seed {seed}: not the value of {terms.baseline} with this seed")
            return None
        experiment.tell(f"{terms.candidate}, seed {seed}: {value!r}, as {terms.baseline} with this seed")
        runs.append(run)
    for run in runs:  # under the role of a bank's runs, once it is known that they are one
        bank.append(trainer.group, method, run)
    experiment.runs += [*baseline, *runs]
    return experiment.make_decision(Outcome.AS_GOOD, equal_seeds=tuple(seeds))
