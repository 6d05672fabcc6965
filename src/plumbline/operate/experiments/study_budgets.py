"""Tries a method of a study at several budgets: steps of its scale, with the warm-up and the pack that these need."""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plumbline.operate.experiments import carry_out_budgets
from plumbline.operate.experiments.carry_out_budgets import RunGain, refuse_other_questions
from plumbline.operate.experiments.carry_out_experiment import ExperimentSource
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.operate.experiments.study_arguments import arms_of
from plumbline.plan import fit_to_time
from plumbline.project.arms import StudyArms
from plumbline.specs import experiment_runs
from plumbline.verdict import implausible_gain
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.budget_course import BudgetTerms, RunsAtBudget
from plumbline.verdict.decision.outcome import BASELINE, MOST
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.own_trainer.run_budget import format_multiple, multiply_whole, parse_multiples


def try_(source: ExperimentSource, base: StudyArms, experiment: dict[str, Any], words: list[str]) -> int:
    """Run a method and its baseline at several budgets; 1x is `--steps`, or the steps of the scale.

    Args:
        source: the same try at one budget.
        base: its arms.
        experiment: the configuration of these, without seeds.
        words: further arguments for Snakemake.
    """
    options, project = source.options, base.project
    refuse_other_questions(options)
    steps, place = base.spec.train.steps, f"{experiment['study']} at scale {experiment['scale']} and 1x (--steps)"
    arms = []
    for multiple in (multiples := parse_multiples(options.at)):
        corpus = project.corpora[base.study.corpus]
        wanted = multiply_whole(steps, multiple, place)
        budget = experiment_runs.budget(base.study, experiment["scale"], wanted, corpus, project.runs.values())
        arms.append(arms_of(project, experiment | budget, words))
    budgets = StudyBudgets(source, base, arms, [format_multiple(multiple) for multiple in multiples])
    return budgets.print_plan() if options.dry_run else carry_out_budgets.try_at_budgets(budgets)


@dataclass
class StudyBudgets:
    """A method of a study, or of a user's own file, and its baseline, at several budgets.

    Attributes:
        source: the same try at one budget, whose place and checks are those of this one.
        base: the arms at 1x, with the scale's own settings.
        trainers: the arms at each budget; `labels`: how many times 1x it is.
    """

    source: ExperimentSource
    base: StudyArms
    trainers: Sequence[StudyArms]
    labels: Sequence[str]

    @property
    def options(self) -> argparse.Namespace:
        """The command line."""
        return self.source.options

    @cached_property
    def terms(self) -> BudgetTerms:
        """What is settled before the first run."""
        question, steps = self.source.question, [arms.spec.train.steps for arms in self.trainers]
        return BudgetTerms(
            name=question.name,
            baseline=question.baseline,
            candidate=question.candidate,
            metric=question.metric,
            higher=question.higher,
            alpha=question.alpha,
            minimum_gain=question.minimum_gain,
            labels=tuple(self.labels),
            budgets=tuple(f"{number:,} steps" for number in steps),
            doublings=tuple(math.log2(number / self.base.spec.train.steps) for number in steps),
            runs=self.options.max_runs or MOST,
            unit=question.unit,
            trainer=question.trainer,
            size=question.size,
            differs=question.differs,
            equal=question.equal,
        )

    @property
    def place(self) -> ExperimentFolders:
        """Where experiments of this preset lie."""
        return self.source.place

    @property
    def bank(self) -> Bank:
        """The runs that are known, as they are when this is first read."""
        return self.source.bank

    @property
    def most_at_once(self) -> int:
        """All that are left: each call of Snakemake takes seconds to begin, and makes no finished run again."""
        return 2 * self.terms.runs

    @property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with, whatever the seed."""
        return self.source.baseline_name

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        return self.source.record | {"first_seed": self.options.first_seed}

    @property
    def arm_evidence(self) -> Evidence:
        """Nothing: a study's arms are specs of one code."""
        return self.source.arm_evidence

    def print_plan(self) -> int:
        """Print what would be run."""
        terms, first = self.terms, self.source.question.first_seed
        runs = [
            replace(arms.run_of(arm), spec=arms.spec_of(arm, seed))
            for arms in self.trainers
            for arm in (BASELINE, terms.candidate)
            for seed in range(first, first + terms.runs)
        ]
        expected = fit_to_time.describe_expected(self.base.project, self.base.study, runs)
        return carry_out_budgets.print_plan(self, None, expected)

    def check(self) -> list[str]:
        """What the checks of a user's own method refuse before anything is trained."""
        return self.source.check(self.source.question)[0]

    def hold(self) -> AbstractContextManager[object]:
        """Hold the folder of the runs."""
        return self.source.hold()

    def explain_implausible(self, gain: RunGain, runs: RunsAtBudget) -> str | None:
        """What to look at, where nothing ever gained so much."""
        mean, preset = statistics.fmean(runs.list_values(baseline=True)), self.base.project.name
        return implausible_gain.describe_implausible_gain(gain.value, gain.sigma, gain.df, mean, preset, loss=True)
