"""Tries a method of a study at several budgets: steps of its scale, with the warm-up and the pack that these need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plumbline.operate.experiments import carry_out_budgets
from plumbline.operate.experiments.carry_out_budgets import BudgetSource, refuse_other_questions
from plumbline.operate.experiments.carry_out_experiment import ExperimentSource
from plumbline.operate.experiments.study_arguments import arms_of
from plumbline.plan import fit_to_time
from plumbline.project.arms import StudyArms
from plumbline.specs import experiment_runs
from plumbline.verdict.decision.budget_course import BudgetTerms
from plumbline.verdict.decision.experiment import BASELINE, MOST
from plumbline.verdict.own_trainer.run_budget import format_multiple, multiply_whole, parse_multiples


def try_(source: ExperimentSource, base: StudyArms, experiment: dict[str, Any], snakemake_words: list[str]) -> int:
    """Run a method and its baseline at several budgets; 1x is `--steps`, or the steps of the scale.

    Args:
        source: the same try at one budget.
        base: its arms.
        experiment: the configuration of these, without seeds.
        snakemake_words: further arguments for Snakemake.
    """
    options, project = source.options, base.project
    refuse_other_questions(options)
    steps, place = base.spec.train.steps, f"{experiment['study']} at scale {experiment['scale']} and 1x (--steps)"
    arms = []
    for multiple in (multiples := parse_multiples(options.at)):
        corpus = project.corpora[base.study.corpus]
        number = multiply_whole(steps, multiple, place)
        budget = experiment_runs.budget(base.study, experiment["scale"], number, corpus, project.runs.values())
        arms.append(arms_of(project, experiment | budget, snakemake_words))
    budgets = StudyBudgets(source, base, arms, [format_multiple(multiple) for multiple in multiples])
    return budgets.print_plan() if options.dry_run else carry_out_budgets.try_at_budgets(budgets)


@dataclass
class StudyBudgets(BudgetSource):
    """A method of a study, or of a user's own file, and its baseline, at several budgets.

    Attributes:
        base: the arms at 1x, with the scale's own settings.
        arms: those at each budget; `labels`: how many times 1x it is.
    """

    base: StudyArms
    arms: Sequence[StudyArms]
    labels: Sequence[str]

    @property
    def trainers(self) -> Sequence[StudyArms]:
        """What trains both arms, at each budget of the terms."""
        return self.arms

    @cached_property
    def terms(self) -> BudgetTerms:
        """What is settled before the first run."""
        steps = [arms.spec.train.steps for arms in self.arms]
        times = [number / self.base.spec.train.steps for number in steps]
        budgets = [f"{number:,} steps" for number in steps]
        return self.settle_terms(self.labels, budgets, times, self.options.max_runs or MOST)

    @property
    def most_at_once(self) -> int:
        """All that are left: each call of Snakemake takes seconds to begin, and makes no finished run again."""
        return 2 * self.terms.runs

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        return self.source.record | {"first_seed": self.options.first_seed}

    def print_plan(self) -> int:
        """Print what would be run."""
        terms, first = self.terms, self.source.question.first_seed
        runs = [
            replace(arms.run_of(arm), spec=arms.spec_of(arm, seed))
            for arms in self.arms
            for arm in (BASELINE, terms.candidate)
            for seed in range(first, first + terms.runs)
        ]
        expected = fit_to_time.estimate_time(self.base.project, self.base.study, runs).message
        return carry_out_budgets.print_plan(self, None, expected)

    def check(self) -> list[str]:
        """What the checks of a user's own method refuse before anything is trained."""
        return self.source.check(self.source.question)[0]
