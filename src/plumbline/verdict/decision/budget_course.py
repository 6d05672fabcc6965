"""Decides whether a candidate's gain goes on at other budgets: holds, shrinks, turns, or is not decided.

The statistics are those of `plumbline.stats.gain_by_budget`. Budgets, the number of runs, which is the same for both
arms at every budget, and the level are settled before the first run, and there is one look, after the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError, UsageError
from plumbline.core.formats import format_percent
from plumbline.stats.gain_by_budget import (
    ArmSummary,
    GainByBudget,
    GainCourse,
    WelchEstimate,
    combine_gains,
    measure_gains,
)
from plumbline.verdict.comparability.check_answer import CheckAnswer
from plumbline.verdict.comparison_terms import LOOP, Terms
from plumbline.verdict.decision.experiment import BASELINE, MOST, ArmRun
from plumbline.verdict.formatting import format_p, format_value, join_with_and, quote, strip_markup
from plumbline.verdict.outcome import Outcome

#: More runs of each arm are not proposed.
MOST_PROPOSED = 100
_OUTCOMES = {
    GainCourse.HOLDS: Outcome.HOLDS,
    GainCourse.SHRINKS: Outcome.SHRINKS,
    GainCourse.TURNS: Outcome.TURNS,
    GainCourse.NOT_DECIDED: Outcome.UNDECIDED,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetTerms(Terms):
    """Everything that is settled before the first run at any budget.

    Attributes:
        name: of the page and its files.
        baseline, candidate, metric, unit: as `ExperimentTerms` has them.
        labels: of the budgets, the smallest first: ``1x``; `budgets`: each as a run is given it.
        doublings: log2 of each budget over that of 1x.
        runs: of each arm at each budget.
        trainer: what trains both arms; `size`: how large the model is, and how long 1x is, in its user's words.
        differs: in what the candidate's recipe differs beyond the change itself.
        equal: the measures of a run in which the arms may not differ at one budget.
    """

    name: str
    baseline: str
    candidate: str
    metric: str
    labels: tuple[str, ...]
    budgets: tuple[str, ...]
    doublings: tuple[float, ...]
    alpha: float = LOOP
    runs: int = MOST
    unit: str = ""
    trainer: str = ""
    size: str = ""
    differs: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise UsageError(f"--max-runs {self.runs}: a spread at each budget needs two runs of each arm, better 8")
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"--alpha {self.alpha:g} must lie between 0 and 0.5; it is one-sided")
        if not 0 <= self.minimum_gain < math.inf:
            raise UsageError(f"--minimum-gain {self.minimum_gain:g} must be 0 or more, in the metric's units")

    @property
    def level(self) -> float:
        """The level of two-sided intervals."""
        return 1 - 2 * self.alpha

    @property
    def design_record(self) -> list[Any]:
        """What decides, to be asked again."""
        return [list(self.budgets), self.runs, self.alpha, self.minimum_gain, list(self.equal)]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsAtBudget:
    """The runs of both arms at one budget, in their order, and what the checks of their evidence answered."""

    runs: tuple[ArmRun, ...]
    comparability: Mapping[str, CheckAnswer] = field(default_factory=dict)

    def list_values(self, *, baseline: bool) -> list[float]:
        """List the values of an arm's runs."""
        runs = [run for run in self.runs if (run.arm == BASELINE) == baseline]
        return [run.value for run in runs if run.has_value and run.value is not None]


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetDecision:
    """How a candidate's gain goes on with the budget, and everything that a page states of it.

    Attributes:
        at_budgets: the runs at each budget, in the order of the terms' labels.
        gain: at each budget, and its slope; None where that could not be judged.
        sentence: the one to quote.
        more: where it is not decided, how many runs of each arm at each budget would decide if the means and spreads
            were as they are; None if that is not known.
        notes: what a reader has to be told besides.
        changed_files, asked, ledger, at: as `Decision` has them.
    """

    terms: BudgetTerms
    verdict: Outcome
    at_budgets: tuple[RunsAtBudget, ...]
    sentence: str = ""
    gain: GainByBudget | None = None
    more: int | None = None
    notes: tuple[str, ...] = ()
    changed_files: Mapping[str, str] | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    ledger: str = ""
    at: str = ""

    @property
    def seconds(self) -> float:
        """What all runs took."""
        return sum(run.seconds or 0.0 for each in self.at_budgets for run in each.runs)


def decide_course(terms: BudgetTerms, at_budgets: Sequence[RunsAtBudget], *, refusal: str = "") -> BudgetDecision:
    """Decide by the runs of all budgets, or say why nothing can be judged.

    `refusal`: why a check of the evidence refuses it; empty if none does.
    """
    decision = BudgetDecision(
        terms=terms, verdict=Outcome.CANNOT_BE_JUDGED, at_budgets=tuple(at_budgets), at=process_record.now()
    )
    for label, each in zip(terms.labels, at_budgets):
        lost_runs = sorted((run for run in each.runs if not run.has_value), key=lambda run: run.arm != BASELINE)
        if lost_runs:
            is_baseline = lost_runs[0].arm == BASELINE
            whose = quote(terms.baseline) if is_baseline else "it"
            reason = f"at {label} seed {lost_runs[0].seed} of {whose} {lost_runs[0].outcome} ({lost_runs[0].why})"
            verdict = Outcome.CANNOT_BE_JUDGED if is_baseline else Outcome.CRASHED
            return end_without_verdict(decision, verdict, reason)
        if len({run.fingerprint for run in each.runs if run.fingerprint}) > 1:
            reason = (
                f"its runs and the baseline's at {label} were not made with the same machine, torch and data, and "
                "means do not cross that; take fresh seeds for both (--first-seed)"
            )
            return end_without_verdict(decision, Outcome.CANNOT_BE_JUDGED, reason)
    if refusal:
        return end_without_verdict(decision, Outcome.CANNOT_BE_JUDGED, refusal)
    values = {
        at: (each.list_values(baseline=True), each.list_values(baseline=False))
        for at, each in zip(terms.doublings, at_budgets, strict=True)
    }
    try:
        gain = measure_gains(values, higher=terms.higher)
    except PlumblineError as error:
        return end_without_verdict(decision, Outcome.CANNOT_BE_JUDGED, str(error))
    course = gain.find_course(terms.alpha, terms.minimum_gain)
    more_runs = count_runs_that_decide(terms, at_budgets) if course == GainCourse.NOT_DECIDED else None
    decision = replace(decision, verdict=_OUTCOMES[course], gain=gain, more=more_runs)
    return replace(decision, sentence=_write_sentence(decision, gain))


def end_without_verdict(decision: BudgetDecision, verdict: Outcome, reason: str) -> BudgetDecision:
    """End as something that is no course of a gain, with its sentence."""
    text = {
        Outcome.CRASHED: "has no gain to tell",
        Outcome.IMPLAUSIBLE: "gains more than any modification did, and is looked at first",
    }.get(verdict, "cannot be judged")
    sentence = f"{quote(decision.terms.candidate)} {text}: {reason.rstrip('.')}."
    return replace(decision, verdict=verdict, sentence=sentence, more=None)


def count_runs_that_decide(terms: BudgetTerms, at_budgets: Sequence[RunsAtBudget]) -> int | None:
    """Count the runs of each arm that would decide if means and spreads were as they are; None above a hundred."""
    arms = {
        at: tuple(each.list_values(baseline=baseline) for baseline in (True, False))
        for at, each in zip(terms.doublings, at_budgets)
    }
    for runs in range(terms.runs + 1, MOST_PROPOSED + 1):
        sides = {
            at: (_summarize(baseline, runs), _summarize(candidate, runs)) for at, (baseline, candidate) in arms.items()
        }
        course = combine_gains(sides, higher=terms.higher).find_course(terms.alpha, terms.minimum_gain)
        if course != GainCourse.NOT_DECIDED:
            return runs
    return None


def _summarize(values: Sequence[float], runs: int) -> ArmSummary:
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return ArmSummary(mean, variance, runs)


def format_change(estimate: WelchEstimate, terms: BudgetTerms) -> str:
    """Write a gain or a slope with its sign, its unit and the digits that its error leaves."""
    number = format_value(estimate.value, estimate.error)
    return f"{'+' if estimate.value >= 0 else ''}{number}{f' {strip_markup(terms.unit)}' if terms.unit else ''}"


def format_ends(estimate: WelchEstimate, terms: BudgetTerms) -> str:
    """Write the interval of a gain or a slope: ``-0.003 to 0.012``."""
    return " to ".join(format_value(end, estimate.error) for end in estimate.interval(terms.level))


def _write_sentence(decision: BudgetDecision, gain: GainByBudget) -> str:
    terms, level = decision.terms, f"{format_percent(decision.terms.level)} interval"
    at_each = [
        f"{format_change(each, terms)} at {label} ({level if not place else ''}{' ' * (not place)}"
        f"{format_ends(each, terms)})"
        for place, (label, each) in enumerate(zip(terms.labels, gain.gains))
    ]
    slope = f"{format_change(gain.slope, terms)} with each doubling of the budget ({format_ends(gain.slope, terms)})"
    name = f"the gain of {quote(terms.candidate)} in {quote(terms.metric)}"
    runs = f"by {terms.runs} fresh runs of each arm at each budget"
    beyond = (
        f"by that slope it is {format_change(gain.beyond, terms)} at twice the largest (p = "
        f"{format_p(gain.beyond.p_above(terms.minimum_gain))})"
    )
    text = {
        Outcome.HOLDS: f"{name} holds: {join_with_and(at_each)}, and it changes by {slope}; {beyond}; {runs}.",
        Outcome.SHRINKS: f"{name} shrinks: {join_with_and(at_each)}; it changes by {slope}, {runs}.",
        Outcome.TURNS: f"{name} turns into a loss: {join_with_and(at_each)}, {runs}.",
        Outcome.UNDECIDED: (
            f"whether {name} holds is not decided {runs}: {join_with_and(at_each)}; it changes by {slope}; "
            f"{_propose_runs(decision)}."
        ),
    }[decision.verdict]
    size = strip_markup(terms.size)
    return f"With {size} as 1x, {text}" if size else f"{text[:1].upper()}{text[1:]}"


def _propose_runs(decision: BudgetDecision) -> str:
    if decision.more is None:
        return f"if means and spreads are as they look, {MOST_PROPOSED} of each arm would not decide either"
    return f"if means and spreads are as they look, {decision.more} of each arm would (--max-runs {decision.more})"
