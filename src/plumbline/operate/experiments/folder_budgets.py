"""Tries a commit of a folder at several budgets: its command is given each as `run.budget` of `plumbline.toml` says."""

from __future__ import annotations

import argparse
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plumbline.operate.experiments import arm_evidence, carry_out_budgets, measuring_terms
from plumbline.operate.experiments.carry_out_budgets import BudgetSource, refuse_other_questions
from plumbline.operate.experiments.folder_arguments import arms_of, place_of, question_at_budgets
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.operate.experiments.folder_source import FolderSource
from plumbline.verdict.decision.budget_course import BudgetTerms
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.run_budget import RunBudget, fill_budget, parse_multiples, require_budget


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
        measuring_terms.record_fixed(baseline)
        arm_evidence.know_written_files(baseline, place_of(file.folder).bank())
        return carry_out_budgets.try_at_budgets(_make_source(options, baseline, budgets))


def _make_source(options: argparse.Namespace, baseline: FolderBaseline, budgets: Sequence[RunBudget]) -> FolderBudgets:
    candidate, other = arms_of(options, baseline)
    question = question_at_budgets(options, baseline, candidate, other)
    bank = place_of(baseline.file.folder).bank()
    return FolderBudgets(FolderSource(options, baseline, candidate, other, question, bank), budgets)


@dataclass
class FolderBudgets(BudgetSource):
    """A commit and what it is compared with, run by a folder's command at several budgets."""

    source: FolderSource
    budgets: Sequence[RunBudget]

    @cached_property
    def terms(self) -> BudgetTerms:
        """What is settled before the first run."""
        labels, texts, times = zip(*((budget.label, budget.text, budget.times) for budget in self.budgets))
        return self.settle_terms(labels, texts, times, self.source.question.most)

    @cached_property
    def trainers(self) -> list[CommandTrainer]:
        """What trains the arms at each budget."""
        return [
            replace(self.source.trainer, budget=budget, _results_by_method={}, _touched=set())
            for budget in self.budgets
        ]

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        source = self.source
        return {"trainer": source.trainer.group, "first_seed": source.question.first_seed} | source.arms_record

    def print_plan(self) -> int:
        """Print what would be run."""
        past = self.source.list_past_seconds()
        return carry_out_budgets.print_plan(
            self, statistics.median(past) / self.source.trainer.at_once if past else None
        )

    def check(self) -> list[str]:
        """List why the arms cannot be compared, or why runs of the baseline are no draws of their own."""
        return self.source.list_refusals()
