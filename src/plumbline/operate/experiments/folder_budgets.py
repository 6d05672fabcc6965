"""Tries a commit of a folder at several budgets: its command is given each as `run.budget` of `plumbline.toml` says."""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plumbline.operate.experiments import arm_evidence, carry_out_budgets, independent_runs
from plumbline.operate.experiments.carry_out_budgets import RunGain, refuse_other_questions
from plumbline.operate.experiments.folder_arguments import arms_of, place_of, question_again
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict import implausible_gain
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.budget_course import BudgetTerms, RunsAtBudget
from plumbline.verdict.decision.outcome import BASELINE, ExperimentQuestion
from plumbline.verdict.evidence import Evidence, parse_measures
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.run_budget import RunBudget, fill_budget, parse_multiples, require_budget
from plumbline.verdict.own_trainer.snapshot import Arm


def try_(options: argparse.Namespace, baseline: FolderBaseline) -> int:
    """Run the working tree, or other flags, against the baseline at several budgets."""
    refuse_other_questions(options)
    file = baseline.file
    declared = require_budget(file.run.budget, f"[run] of {file.path}")
    place = f"run.budget of {file.path}"
    budgets = [fill_budget(declared, multiple, place) for multiple in parse_multiples(options.at)]
    if options.dry_run:
        return _make_source(options, baseline, budgets).print_plan()
    with baseline.folder.hold(shlex.join(["plumbline", "try", "--at", options.at, "-m", options.message])):
        baseline.folder.baseline(baseline.repository)
        baseline.record_fixed()
        arm_evidence.know_written_files(baseline, place_of(file.folder).bank())
        return carry_out_budgets.try_at_budgets(_make_source(options, baseline, budgets))


def _make_source(options: argparse.Namespace, baseline: FolderBaseline, budgets: Sequence[RunBudget]) -> FolderBudgets:
    candidate, other = arms_of(options, baseline)
    return FolderBudgets(options, baseline, candidate, other, budgets, place_of(baseline.file.folder).bank())


@dataclass
class FolderBudgets:
    """A commit and what it is compared with, run by a folder's command at several budgets."""

    options: argparse.Namespace
    baseline: FolderBaseline
    candidate: Arm
    other: Arm
    budgets: Sequence[RunBudget]
    bank: Bank

    @cached_property
    def place(self) -> ExperimentFolders:
        """Where the folder's experiments lie."""
        return place_of(self.baseline.file.folder)

    @cached_property
    def question(self) -> ExperimentQuestion:
        """What is the same of a try at one budget."""
        name = f"{self.candidate.method}-against-{self.other.method}"  # whatever it is called: no second try by words
        metric = self.baseline.file.metric.called
        return question_again(self.baseline, self.candidate, self.other, name, metric)

    @cached_property
    def terms(self) -> BudgetTerms:
        """What is settled before the first run: as the command line states it, and else as `plumbline.toml` does."""
        options, question, settings = self.options, self.question, self.baseline.file.decide
        return BudgetTerms(
            name=question.name,
            baseline=question.baseline,
            candidate=question.candidate,
            metric=question.metric,
            higher=question.higher,
            alpha=settings.alpha if options.alpha is None else options.alpha,
            minimum_gain=settings.minimum_gain if options.minimum_gain is None else options.minimum_gain,
            labels=tuple(budget.label for budget in self.budgets),
            budgets=tuple(budget.words for budget in self.budgets),
            doublings=tuple(math.log2(budget.times) for budget in self.budgets),
            runs=options.max_runs or settings.max_runs,
            unit=question.unit,
            trainer=question.trainer,
            size=self.baseline.file.run.size,
            differs=question.differs,
            equal=parse_measures(options.equal, "--equal") or settings.equal,
        )

    @cached_property
    def trainers(self) -> list[CommandTrainer]:
        """What trains the arms at each budget."""
        return [replace(self._trainer, budget=budget, _known={}, _touched=set()) for budget in self.budgets]

    @cached_property
    def _trainer(self) -> CommandTrainer:
        return self.baseline.trainer(self.candidate, self.other)

    @property
    def most_at_once(self) -> int:
        """Pairs, or as many as have room next to each other: a stop loses no more, and the arms are in turn."""
        return max(2, self._trainer.at_once + self._trainer.at_once % 2)

    @property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with."""
        return self._trainer.method(BASELINE)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        arms = (self.candidate, self.other)
        first = self.baseline.first_seed if self.options.first_seed is None else self.options.first_seed
        return {
            "trainer": self._trainer.group,
            "first_seed": first,
            "arms": [arm.record for arm in arms],
            "methods": [arm.method for arm in arms],
        }

    @cached_property
    def arm_evidence(self) -> Evidence:
        """What is known of the arms beside their runs: the files that differ, and those that measure."""
        return arm_evidence.gather(self.baseline, self.candidate, self.other, self.question, self.options.verb)

    def print_plan(self) -> int:
        """Print what would be run."""
        trainer, bank = self._trainer, self.bank
        past = [run.seconds for run in bank.list_runs(trainer.group, trainer.method(BASELINE)) if run.has_value]
        seconds = [each for each in past if each]
        per_run = statistics.median(seconds) / trainer.at_once if seconds else None
        return carry_out_budgets.print_plan(self, per_run)

    def check(self) -> list[str]:
        """List why the arms cannot be compared, or why runs of the baseline are no draws of their own."""
        failing = arm_evidence.list_refusals(self.arm_evidence, self.candidate, self.baseline)
        runs = independent_runs.list_runs(self._trainer, self.bank, self.baseline.first_seed)
        reason = independent_runs.explain_dependence(self._trainer, runs)
        return failing + ([f"nothing was run: {reason}"] if reason else [])

    def hold(self) -> AbstractContextManager[None]:
        """Nothing: the folder is held already."""
        return nullcontext()

    def explain_implausible(self, gain: RunGain, runs: RunsAtBudget) -> str | None:
        """What to look at, where nothing ever gained so much."""
        values = runs.list_values(baseline=True)
        positive_loss = not self.question.higher and min(*values, *runs.list_values(baseline=False)) > 0
        mean = statistics.fmean(values)
        return implausible_gain.describe_implausible_own_gain(
            gain.value, gain.sigma, gain.df, mean, positive_loss=positive_loss
        )
