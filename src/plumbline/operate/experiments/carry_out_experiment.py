"""Carries an experiment out, whoever trains its arms: into the ledger, run, written with its page, and printed.

The steps of `plumbline try` and `plumbline confirm` stand here once. A study's method (`study_verbs`) and a folder's
commit (`folder_source`) are two sources, which supply what differs (`ExperimentSource`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from plumbline.core import command_line
from plumbline.core.errors import visible
from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.formats import format_count, format_seconds
from plumbline.core.terminal_lines import fold_lines
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check, guards
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision import as_good_as, decision_page, fix_design
from plumbline.verdict.decision.as_good_as import decide_by_equal_seeds, explain_too_few_runs
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.budget_course import BudgetTerms
from plumbline.verdict.decision.decision_sentences import describe_session, write_sentence
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, Decision, ExperimentQuestion, ExperimentTerms
from plumbline.verdict.decision.loop import Experiment, RunOrder, Trainer
from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.guard_limit import write_guards
from plumbline.verdict.ledger import LedgerEntry
from plumbline.verdict.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class SettledExperiment:
    """An experiment that is settled: its terms, the order of its runs, its entry of the ledger, and the report of the
    checks before the runs. `too_few`: why its runs are too few to be begun, where their number was not named.
    """

    terms: ExperimentTerms
    plan: RunOrder
    entry: LedgerEntry
    checks: Mapping[str, Any] = field(default_factory=dict)
    too_few: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunGain:
    """A gain in the metric's units, with the sigma of a run and its degrees of freedom, and the values of both arms."""

    value: float
    sigma: float
    df: float
    baseline_values: Sequence[float]
    candidate_values: Sequence[float]


class RunsSource(Protocol):
    """Runs, whoever trains them: what every question asks of them."""

    @property
    def options(self) -> argparse.Namespace:
        """The command line."""

    @property
    def place(self) -> ExperimentFolders:
        """Where the experiments lie that this one is compared with."""

    @property
    def bank(self) -> Bank:
        """The runs that are known, first read when the folder is held; a dry run holds nothing."""

    @property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with."""

    @property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""

    def hold(self) -> AbstractContextManager[object]:
        """Hold the folder of the runs, where it is not held yet."""


class ExperimentSource(RunsSource, Protocol):
    """What a try or a claim is made for, and the steps that differ between its kinds."""

    @property
    def question(self) -> ExperimentQuestion:
        """The question of the experiment."""

    @property
    def trainer(self) -> Trainer:
        """What trains both arms."""

    @property
    def arm_evidence(self) -> Evidence:
        """What is known of the arms beside their runs: the files that differ, and those that measure."""

    def find_decision(self, question: ExperimentQuestion) -> Decision | None:
        """What was decided of this already."""

    def explain_implausible(self, gain: RunGain) -> str | None:
        """What to look at, where nothing ever gained so much."""

    def check(self, question: ExperimentQuestion) -> tuple[list[str], Mapping[str, Any]]:
        """Why nothing may be run, nothing if it may; and the report of the checks."""

    def look_again(self, decision: Decision) -> Decision:
        """Check what would be kept, and run it again where fresh runs are asked for; may change the verdict."""

    def finish(self, decision: Decision) -> int:
        """Print what was decided of a try, do and print what is next, and return the exit code."""


def try_candidate(source: ExperimentSource) -> int:
    """Run a candidate against its baseline until it is decided, unless it was, and return the exit code."""
    question = with_own_page(source.question, source.record)
    decision = source.find_decision(question)
    if decision is not None and not (decision.verdict == Outcome.IMPLAUSIBLE and source.options.accept_implausible):
        tell_decided(decision)
        return source.finish(decision)
    failing, checks = source.check(question)
    if failing:
        return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
    with source.hold():
        if question.as_good_as:
            question = settle_margin(source, question, make=True)
        return source.finish(decide(source, settle_try(source, question, checks)))


def confirm(source: ExperimentSource) -> int:
    """Run what was kept again with fresh seeds of both arms, and return the exit code."""
    with source.hold():
        terms, plan = fix_design.fix_claim(source.question, source.trainer, source.bank)
        entry = make_entry(source, source.trainer, source.question, test=fix_design.write_claim_rule(source.question))
        decision = decide(source, SettledExperiment(terms=terms, plan=plan, entry=entry))
        return print_decision(decision, source.place.page(terms.name), as_json=source.options.json)


def make_entry(
    source: ExperimentSource, trainer: Trainer, terms: ExperimentTerms | BudgetTerms, *, test: str, kind: str = "try"
) -> LedgerEntry:
    """Write the ledger's entry of a try that nothing is decided of yet; `test`: the rule that decides."""
    arms = [trainer.method(BASELINE), trainer.method(terms.candidate)]
    return LedgerEntry(
        kind=kind,
        name=terms.name,
        fingerprint=sha256_text(canonical_json(arms)),
        baseline=source.baseline_name,
        metric=terms.metric,
        test=test,
        commit=source.record["arms"][0]["commit"] if "arms" in source.record else "",
    )


def with_own_page(question: ExperimentQuestion, record: Mapping[str, Any]) -> ExperimentQuestion:
    """Name a question by the code of its arms and by its rule too, so that no other try writes over its page."""
    parts = [record.get("trainer"), record["methods"], record["design"]]
    return replace(question, name=f"{question.name}-{sha256_text(canonical_json(parts))[:8]}")


def settle_try(
    source: ExperimentSource, request: ExperimentQuestion, checks: Mapping[str, Any] | None = None
) -> SettledExperiment:
    """Settle a try by what the ledger has of its session.

    Raises:
        PlumblineError: its runs were examined under another rule, or it is none that its session has room for.
    """
    ledger = source.place.read_ledger()
    entry = make_entry(source, source.trainer, request, test=fix_design.write_rule(request))
    level = fix_design.find_session_level(request, entry, ledger)
    question = replace(request, alpha=level, bank_since=fix_design.count_runs_at_last_keep(entry, ledger))
    terms, plan = fix_design.fix_design(question, source.trainer, source.bank)
    fix_design.require_announced(entry, plan, source.trainer, source.bank, ledger)
    few = explain_too_few_runs(question) if question.as_good_as and question.minimum_gain else ""
    return SettledExperiment(terms=terms, plan=plan, entry=entry, checks=checks or {}, too_few=few)


def settle_margin(source: ExperimentSource, request: ExperimentQuestion, *, make: bool) -> ExperimentQuestion:
    """Settle the margin of a question whether a candidate is as good, by the runs of the bank.

    Without `make` nothing is run, and the margin stays open where runs are missing. It stays open too where a run of
    the baseline has no value, so that nothing can be judged.
    """
    entry, ledger, bank = make_entry(source, source.trainer, request, test=""), source.place.read_ledger(), source.bank
    question = replace(request, bank_since=fix_design.count_runs_at_last_keep(entry, ledger))
    terms, plan = fix_design.fix_design(question, source.trainer, bank)
    experiment = Experiment(terms=terms, plan=plan, trainer=source.trainer, bank=bank, tell=tell)
    if make:
        experiment.take_bank()
    values = experiment.list_bank()
    return request if values is None else as_good_as.settle_margin(request, values, ledger)


def decide(source: ExperimentSource, settled: SettledExperiment) -> Decision:
    """Enter a try, run it, examine the decision once more, and write it with its page."""
    terms, entry, place, bank = settled.terms, settled.entry, source.place, source.bank
    ledgers.append(place.ledger, [entry])
    trained_by = ", ".join(part for part in (terms.trainer, terms.budget) if part)
    tell(
        f"{terms.candidate} against {terms.baseline}: {trained_by}. {describe_rule(terms)} T: the mean gain over its "
        "standard error."
    )
    experiment = Experiment(terms=terms, plan=settled.plan, trainer=source.trainer, bank=bank, tell=tell)
    decision = _decide_as_good(experiment, settled) if terms.as_good_as and not terms.claim else experiment.conduct()
    decision = replace(decision, checks=settled.checks)
    if decision.verdict.is_kept:  # else no fresh run is made of what a check refuses
        decision = hold_to_evidence(decision, source)
    decision = hold_to_evidence(source.look_again(decision), source)
    entry = replace(entry, verdict=decision.verdict, sentence=decision.sentence, at=decision.at, runs=len(bank.runs))
    with ledgers.append_provisionally(place.ledger, [entry]) as ledger:
        decision = replace(
            decision,
            asked=source.record,
            ledger=ledgers.write_statement(ledger, place.pages),
            tries=ledger.count_tries(entry.baseline, entry.metric),
        )
        decision_page.write(decision, place.page(terms.name))
    return decision


def _decide_as_good(experiment: Experiment, settled: SettledExperiment) -> Decision:
    """Decide by equal values at equal seeds, or by the test where they differ and there are runs enough."""
    if experiment.terms.minimum_gain:  # else a run of the baseline has no value
        if (decision := decide_by_equal_seeds(experiment)) is not None:
            return decision
        if settled.too_few:
            return experiment.make_decision(Outcome.CANNOT_BE_JUDGED, reason=settled.too_few)
        tell(as_good_as.describe_chance_of(experiment.terms))
    return experiment.conduct()


def hold_to_evidence(decision: Decision, source: ExperimentSource) -> Decision:
    """Examine what a decision stands on, and withhold it where a check refuses, or a keep where a guard is broken."""
    terms = decision.terms
    arms = compare_arms(
        source,
        source.trainer,
        terms,
        decision.runs,
        decision.fresh,
        paired=terms.design.plan == "paired",
        guards=terms.guards,
        confirmed=decision.verdict.is_kept if decision.fresh else None,
        tries=1 if terms.claim else source.place.read_ledger().count_tries_made(source.baseline_name, terms.metric),
    )
    answers, evidence = every_check.examine(arms), arms.evidence
    changed = evidence.changed_files
    order = tuple(evidence.runs[run.arm][str(run.seed)].order for run in (*decision.runs, *decision.fresh))
    decision = replace(decision, order=order, comparability=answers, changed_files=changed)
    if decision.verdict in (Outcome.CRASHED, Outcome.CANNOT_BE_JUDGED):
        return decision
    refusal = every_check.describe_refusal(answers)
    if not refusal and decision.verdict.is_kept and (broken := guards.describe_broken(arms)):
        withheld = replace(decision, verdict=Outcome.DISCARD)
        return replace(withheld, sentence=write_sentence(withheld, reason=broken))
    if not refusal:
        return decision
    refused = replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, estimate=None, p=None, more=None)
    return replace(refused, sentence=write_sentence(refused, reason=refusal))


def compare_arms(
    source: ExperimentSource,
    trainer: Trainer,
    terms: ExperimentTerms | BudgetTerms,
    runs_looked_at: Sequence[ArmRun],
    fresh_runs: Sequence[ArmRun] = (),
    **more: Any,
) -> ComparedArms:
    """Collect what is known of every run, by arm, and of the arms themselves; `more`: what else a check reads."""
    places = {(banked.run.run_id, banked.run.seed): place for place, banked in enumerate(source.bank.runs)}
    runs: dict[str, dict[str, RunEvidence]] = {}
    for run in (*runs_looked_at, *fresh_runs):
        place = places.get((run.run_id, run.seed))
        evidence = replace(trainer.evidence(run), order=place, fresh=run in fresh_runs)
        runs.setdefault(run.arm, {})[str(run.seed)] = evidence
    return ComparedArms(
        evidence=replace(source.arm_evidence, runs=runs),
        baseline=BASELINE,
        candidate=terms.candidate,
        labels={BASELINE: terms.baseline},
        higher=terms.higher,
        equal=terms.equal,
        **more,
    )


def withhold_implausible(decision: Decision, source: ExperimentSource, *, looked_at: bool) -> Decision:
    """Keep nothing for a gain that no modification had, before somebody has examined it (`looked_at`)."""
    look = decision.looks[-1]
    gain = RunGain(
        value=look.gain,
        sigma=look.sigma,
        df=look.df,
        baseline_values=decision.baseline_values,
        candidate_values=decision.candidate_values,
    )
    if (reason := source.explain_implausible(gain)) is None:
        return decision
    flagged = replace(decision, checks={**decision.checks, "implausible": {decision.terms.candidate: reason}})
    if looked_at:
        return replace(
            flagged, notes=(*flagged.notes, "So large a gain was said to have been looked at (--accept-implausible).")
        )
    flagged = replace(flagged, verdict=Outcome.IMPLAUSIBLE, more=None)
    return replace(flagged, sentence=write_sentence(flagged))


def tell_decided(decision: Decision) -> None:
    """State that this was decided already."""
    advice = "the same code has no second try" if decision.is_unconfirmed else "for other seeds: --first-seed"
    tell(f"{describe_earlier(decision)}; {advice}")


def describe_earlier(decision: Decision) -> str:
    """State when this was decided, and for a folder's code under which label."""
    label = f" as `{decision.terms.candidate}`" if "arms" in decision.asked else ""
    return f"decided already{label}, {decision.at}"


def print_decision(decision: Decision, page: Path, *, as_json: bool, **more: Any) -> int:
    """Print a decision, and return its exit code; `more` goes into the object of JSON."""
    if as_json:
        print(json.dumps(decision_page.decision_to_json(decision) | {"page": str(page)} | more), flush=True)
        return decision.exit_code
    run_count = format_count(sum(run.arm != BASELINE for run in decision.runs), "run")
    fresh = f" and {len(decision.fresh)} fresh ones of both arms" if decision.fresh else ""
    took = format_seconds(decision.seconds + sum(run.seconds or 0.0 for run in decision.fresh))
    beforehand = f"; deciding with a number of runs fixed beforehand would take {decision.fixed_runs}"
    fixed = beforehand if decision.fixed_runs else ""
    closing = [f"{run_count} of it{fresh}, {took} of training{fixed}. {describe_rule(decision.terms)}"]
    decision_page.print_decision(decision, [*closing, *([] if decision.terms.claim else [describe_session(decision)])])
    print(shorten_path(page), flush=True)  # whole, however long: a path is copied
    return decision.exit_code


def describe_run(run: ArmRun) -> str:
    """State what a run gave, or why it gave nothing, and how long it took."""
    took = f" ({format_seconds(run.seconds)})" if run.seconds is not None else ""
    return (f"{run.value:.6g}" if run.has_value else f"{run.outcome}: {run.why}") + took


def shorten_path(page: Path) -> str:
    """A path as it is shortest from here."""
    return min(str(page), os.path.relpath(page), key=len)


def describe_rule(terms: ExperimentTerms) -> str:
    """State in a sentence what decides."""
    design = terms.design
    guarded = f"; guards: {write_guards(terms.guards)}" if terms.guards else ""
    if terms.claim:
        return f"Fresh seeds: {design.bank} of each, one t test at {design.alpha:g}, one-sided{guarded}."
    order = {"bank": f"{design.bank} runs of the baseline, then", "paired": "pairs of runs:"}.get(
        design.plan, "in turn:"
    )
    fresh = f"; a keep is run {terms.fresh_runs} times again, in turn with the baseline" if terms.fresh_runs else ""
    return (
        f"Rule: {order} at most {design.most} of the candidate, a look after each, one-sided error {design.alpha:g} in "
        f"all{fresh}{guarded}."
    )


def tell(line: str) -> None:
    """Print a line of what goes on, next to the final output: folded at a terminal's width, whole in a log."""
    print(fold_lines(visible(line), sys.stderr), file=sys.stderr, flush=True)
