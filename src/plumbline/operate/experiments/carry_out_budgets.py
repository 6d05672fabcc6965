"""Carries out `plumbline try --at`: runs both arms at several budgets, whoever trains them, and decides how the gain
goes on.

All runs have fresh seeds, which stand in the ledger before the first of them is made: a try that was stopped goes on
with the same ones, and what is finished is used. The cheapest budget comes first.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, UsageError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.formats import format_count, format_rough_duration
from plumbline.operate.experiments.carry_out_experiment import (
    ExperimentSource,
    RunGain,
    compare_arms,
    describe_run,
    make_entry,
    shorten_path,
    tell,
)
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import budget_effect, every_check
from plumbline.verdict.decision import budget_page
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.budget_course import (
    BudgetDecision,
    BudgetTerms,
    RunsAtBudget,
    decide_course,
    end_without_verdict,
)
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.decision.loop import Trainer
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.ledger import BUDGETS
from plumbline.verdict.outcome import Outcome

#: Options of a try that ask something else than `--at`, and why.
_OTHER_QUESTIONS = {
    "as_good_as": "asks whether it is worse by less than a margin",
    "quick": "is a first look at one budget",
    "time_budget": "fits one budget",
    "baseline_runs": "is of a baseline that is there before; here both arms have --max-runs runs at each budget",
    "target_gain_sigmas": "ends runs early, and their number is fixed here",
    "session": "is of tries that are kept, and nothing is kept here",
    "planned_tries": "is of tries that are kept, and nothing is kept here",
    "paired": "orders the runs of one budget; here both arms are in turn, with seeds of their own",
    "interleave_baseline": "orders the runs of one budget; here both arms are in turn",
    "commit": "commits what is kept, and nothing is kept here",
}
#: Verdicts after which the same command makes runs again that were lost.
_NOT_DECIDED = (Outcome.CRASHED, Outcome.CANNOT_BE_JUDGED)


@dataclass
class BudgetSource(ABC):
    """A candidate and its baseline at several budgets, and what differs between kinds of sources.

    Attributes:
        source: the same try at one budget, whose question, place, runs and evidence of the arms are those of this one.
    """

    source: ExperimentSource

    @property
    @abstractmethod
    def terms(self) -> BudgetTerms:
        """What is settled before the first run."""

    @property
    @abstractmethod
    def trainers(self) -> Sequence[Trainer]:
        """What trains both arms, at each budget of the terms."""

    @property
    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""

    @abstractmethod
    def check(self) -> list[str]:
        """Why nothing may be run, nothing if it may."""

    @property
    def most_at_once(self) -> int:
        """How many runs are asked for together: an even number, since arms are in turn, and a stop loses no more."""
        return _count_pairs(self.source.trainer)

    @property
    def options(self) -> argparse.Namespace:
        """The command line."""
        return self.source.options

    @property
    def place(self) -> ExperimentFolders:
        """Where the experiments lie that this one is compared with."""
        return self.source.place

    @property
    def bank(self) -> Bank:
        """The runs that are known, as they are when this is first read."""
        return self.source.bank

    def settle_terms(
        self, labels: Sequence[str], budgets: Sequence[str], times: Sequence[float], runs: int
    ) -> BudgetTerms:
        """Settle the terms of the question at these budgets.

        Args:
            labels: of the budgets, the smallest first: ``1x``.
            budgets: each as a run is given it.
            times: each as a multiple of 1x.
            runs: of each arm at each budget.
        """
        question = self.source.question
        return BudgetTerms(
            name=question.name,
            baseline=question.baseline,
            candidate=question.candidate,
            metric=question.metric,
            higher=question.higher,
            alpha=question.alpha,
            minimum_gain=question.minimum_gain,
            labels=tuple(labels),
            budgets=tuple(budgets),
            doublings=tuple(map(math.log2, times)),
            runs=runs,
            unit=question.unit,
            trainer=question.trainer,
            size=question.size,
            differs=question.differs,
            equal=question.equal,
        )


def _count_pairs(trainer: Trainer) -> int:
    """Count the runs of pairs that have room next to each other, one pair at least."""
    return max(2, trainer.at_once + trainer.at_once % 2)


def refuse_other_questions(options: argparse.Namespace) -> None:
    """Refuse options that have no meaning with `--at`.

    Raises:
        UsageError: there is one; why is said.
    """
    for name, why in _OTHER_QUESTIONS.items():
        if getattr(options, name, None):
            raise UsageError(f"--at {options.at}: --{name.replace('_', '-')} {why}; leave out one of the two")


def with_page_name(terms: BudgetTerms, record: dict[str, Any]) -> BudgetTerms:
    """Name terms by the code of both arms and by their rule, so that no other try writes over their page."""
    parts = [record.get("trainer"), record["methods"], record["first_seed"], terms.design_record]
    digest = sha256_text(canonical_json(parts))[:8]
    return replace(terms, name=f"{terms.name}-at-{'-'.join(terms.labels).replace('/', '_')}-{digest}")


def count_units(terms: BudgetTerms) -> float:
    """Count what all runs cost, in runs of 1x."""
    return 2 * terms.runs * sum(2.0**at for at in terms.doublings)


def describe_rule(terms: BudgetTerms) -> str:
    """State in a sentence which runs are made and what decides."""
    runs = 2 * terms.runs * len(terms.labels)
    return (
        f"Rule: {terms.runs} fresh runs of each arm at each of {', '.join(terms.labels)}, in turn, {runs} in all, "
        f"which cost as much as {count_units(terms):g} runs of 1x; then one look, at {terms.alpha:g}, one-sided."
    )


def print_plan(source: BudgetSource, seconds: float | None, expected: str = "") -> int:
    """Print what would be run.

    `seconds`: what a run of 1x takes; None if that is not known. `expected`: what all runs are expected to take, where
    that is known otherwise.
    """
    terms = with_page_name(source.terms, source.record)
    show = command_line.print_plan
    if (decision := find_decision(source, terms)) is not None:
        sentence = f"decided already, {decision.at}: {decision.sentence}"
        return show(sentence, as_json=source.options.json, runs_at_most=0, seconds_at_most=0.0)
    if failing := source.check():
        return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
    seeds = _find_seeds(source, terms)
    missing = [
        2.0**at
        for at, trainer, pairs in zip(terms.doublings, source.trainers, _list_pairs(terms, seeds))
        for pair in pairs
        if source.bank.find_run(trainer.run_id(*pair)) is None
    ]
    took = None if seconds is None else seconds * sum(missing)
    how_long = expected or "how long one takes is not known yet."
    if took is not None:
        how_long = f"{format_rough_duration(took)}, if a run takes as long as its budget says."
    budgets = "; ".join(f"{label}: {budget}" for label, budget in zip(terms.labels, terms.budgets))
    text = (
        f"{terms.candidate} against {terms.baseline} at {budgets}. {describe_rule(terms)} "
        f"{format_count(len(missing), 'run')} to be made: {how_long}"
    )
    more: dict[str, Any] = {"runs_at_most": len(missing), "seconds_at_most": took, "units_of_1x": sum(missing)}
    return show(text, as_json=source.options.json, candidate=terms.candidate, baseline=terms.baseline, **more)


def try_at_budgets(source: BudgetSource) -> int:
    """Run both arms at every budget, unless that was decided, and return the exit code."""
    terms = with_page_name(source.terms, source.record)
    decision = find_decision(source, terms)
    if decision is not None and not (decision.verdict == Outcome.IMPLAUSIBLE and source.options.accept_implausible):
        tell(f"decided already, {decision.at}; for other seeds: --first-seed")
        return print_decision(source, decision)
    if failing := source.check():
        return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
    with source.source.hold():
        return print_decision(source, _decide(source, terms))


def find_decision(source: BudgetSource, terms: BudgetTerms) -> BudgetDecision | None:
    """Find what was decided of this very question."""
    page = source.place.page(terms.name)
    if not (page.exists() and page.with_suffix(".json").exists()):
        return None
    decision = budget_page.read(page.with_suffix(".json"))
    return None if decision.verdict in _NOT_DECIDED else decision


def _decide(source: BudgetSource, terms: BudgetTerms) -> BudgetDecision:
    seeds, place = _find_seeds(source, terms), source.place
    required = f", minimum gain {terms.minimum_gain:g}" if terms.minimum_gain else ""
    test = (
        f"gain at {', '.join(terms.labels)}, {terms.runs} runs of each arm at each, seeds from {seeds}{required} "
        f"at {terms.alpha:g}"
    )
    entry = make_entry(source.source, source.trainers[0], terms, test=test, kind=BUDGETS)
    ledgers.append(place.ledger, [entry])
    tell(f"{terms.candidate} against {terms.baseline}: {terms.trainer}. {describe_rule(terms)}")
    at_budgets = list[RunsAtBudget]()
    evidence = dict[float, list[RunEvidence]]()
    for place_of_budget, (label, pairs) in enumerate(zip(terms.labels, _list_pairs(terms, seeds))):
        trainer, doublings = source.trainers[place_of_budget], terms.doublings[place_of_budget]
        runs = _take_runs(source, trainer, pairs, terms, label)
        tries = place.read_ledger().count_tries_made(source.source.baseline_name, terms.metric)
        arms = compare_arms(source.source, trainer, terms, runs, tries=tries + place_of_budget)
        evidence[2.0**doublings] = [run for each in arms.evidence.runs.values() for run in each.values()]
        at_budgets.append(RunsAtBudget(runs=tuple(runs), comparability=every_check.examine(arms)))
        if len(runs) < len(pairs) or not all(run.has_value for run in runs):
            break
    if len(at_budgets) == len(terms.labels):
        answer = budget_effect.check(evidence, (terms.labels[0], terms.labels[-1]))
        last = at_budgets[-1]
        at_budgets[-1] = replace(last, comparability={**last.comparability, budget_effect.NAME: answer})
    by_label = {label: each.comparability for label, each in zip(terms.labels, at_budgets)}
    decision = decide_course(terms, at_budgets, refusal=budget_page.describe_refusal(by_label))
    decision = _withhold_implausible(source, decision)
    decision = replace(decision, changed_files=source.source.arm_evidence.changed_files, asked=source.record)
    entry = replace(entry, verdict=decision.verdict, sentence=decision.sentence, at=decision.at)
    entry = replace(entry, runs=len(source.bank.runs))
    with ledgers.append_provisionally(place.ledger, [entry]) as ledger:
        decision = replace(decision, ledger=ledgers.write_statement(ledger, place.pages))
        budget_page.write(decision, place.page(terms.name))
    return decision


def _withhold_implausible(source: BudgetSource, decision: BudgetDecision) -> BudgetDecision:
    """Tell no course of a gain that no modification had, before somebody has examined it."""
    if decision.gain is None:
        return decision
    for label, gain, each in zip(decision.terms.labels, decision.gain.gains, decision.at_budgets):
        sigma = gain.error * math.sqrt(decision.terms.runs / 2)  # of both arms, as if they spread alike
        run_gain = RunGain(
            value=gain.value,
            sigma=sigma,
            df=gain.df,
            baseline_values=each.list_values(baseline=True),
            candidate_values=each.list_values(baseline=False),
        )
        if reason := source.source.explain_implausible(run_gain):
            if source.options.accept_implausible:
                note = f"At {label}: {reason}. So large a gain was said to have been looked at (--accept-implausible)."
                return replace(decision, notes=(*decision.notes, note))
            return end_without_verdict(decision, Outcome.IMPLAUSIBLE, f"at {label}, {reason}")
    return decision


def _find_seeds(source: BudgetSource, terms: BudgetTerms) -> int:
    """The first seed: that of the ledger where this was begun, else one above all that any run had."""
    for entry in source.place.read_ledger().entries:
        if (entry.kind, entry.name) == (BUDGETS, terms.name) and (match := re.search(r"seeds from (\d+)", entry.test)):
            return int(match[1])
    used = [banked.run.seed for banked in source.bank.runs]
    return max([*used, (source.options.first_seed or 0) - 1]) + 1


def _list_pairs(terms: BudgetTerms, first: int) -> Iterator[list[tuple[str, int]]]:
    """List the runs of each budget, both arms in turn; no seed is used twice."""
    for place in range(len(terms.labels)):
        seeds = range(first + 2 * terms.runs * place, first + 2 * terms.runs * (place + 1))
        yield [((terms.candidate if number % 2 else BASELINE), seed) for number, seed in enumerate(seeds)]


def _take_runs(
    source: BudgetSource, trainer: Trainer, pairs: Sequence[tuple[str, int]], terms: BudgetTerms, label: str
) -> list[ArmRun]:
    """Have the runs made that are not there, up to the first that has no value, and return all in their order."""
    bank, runs = source.bank, dict[tuple[str, int], ArmRun]()
    for arm, seed in pairs:
        if (run := bank.find_run(trainer.run_id(arm, seed))) is not None:
            runs[arm, seed] = run.rename(arm)
    missing = [pair for pair in pairs if pair not in runs]
    if runs:
        tell(f"{format_count(len(runs), 'run')} at {label} {'are' if len(runs) > 1 else 'is'} there")
    while missing and all(run.has_value for run in runs.values()):
        # The first pair comes alone, so that an arm that breaks costs no more.
        size = source.most_at_once if runs else _count_pairs(trainer)
        batch, missing = missing[:size], missing[size:]
        for run in trainer.run(batch):
            bank.append(trainer.group, trainer.method(run.arm), run, f"{BUDGETS}:{terms.name}")
            runs[run.arm, run.seed] = run
            name = terms.baseline if run.arm == BASELINE else run.arm
            tell(f"{name} at {label}, seed {run.seed}: {describe_run(run)}; run {len(runs)} of {len(pairs)}")
        if lost_pairs := [pair for pair in batch if pair not in runs]:
            raise PlumblineError(
                f"{lost_pairs[0][0]} at {label} with seed {lost_pairs[0][1]} was asked for and not made"
            )
    return [runs[pair] for pair in pairs if pair in runs]


def print_decision(source: BudgetSource, decision: BudgetDecision) -> int:
    """Print what was decided, and return its exit code."""
    page: Path = source.place.page(decision.terms.name)
    if source.options.json:
        print(json.dumps(budget_page.decision_to_json(decision) | {"page": str(page)}), flush=True)
    else:
        budget_page.print_decision(decision, shorten_path(page))
    return decision.verdict.exit_code
