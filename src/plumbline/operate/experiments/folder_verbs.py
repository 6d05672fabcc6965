"""Runs the verbs of an experiment in a folder with a `plumbline.toml`: the arms are commits, run by its own command."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from plumbline.core import command_line
from plumbline.core.errors import visible
from plumbline.core.formats import format_count
from plumbline.core.terminal_lines import fold_lines
from plumbline.operate.experiments import (
    arm_evidence,
    carry_out_budgets,
    carry_out_experiment,
    independent_runs,
    measuring_terms,
)
from plumbline.operate.experiments.carry_out_budgets import BudgetSource, refuse_other_questions
from plumbline.operate.experiments.carry_out_experiment import print_decision, tell_decided
from plumbline.operate.experiments.folder_arguments import (
    arms_of,
    load_baseline,
    open_baseline,
    place_of,
    question_again,
    question_at_budgets,
    question_of,
    require_baseline,
    slug,
)
from plumbline.operate.experiments.folder_baseline import FolderBaseline, commit
from plumbline.operate.experiments.folder_source import (
    FolderSource,
    append_rows,
    follow_and_write_row,
    print_and_follow,
)
from plumbline.operate.experiments.margin_arguments import repeat_margin
from plumbline.operate.experiments.past_experiments import print_log, print_noise, print_page
from plumbline.operate.experiments.rule_noise import print_rule
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.budget_course import BudgetTerms
from plumbline.verdict.decision.experiment import read_decision
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.run_budget import RunBudget, fill_budget, parse_multiples, require_budget
from plumbline.verdict.own_trainer.trainer_file import load

#: Why such a try cannot be judged, as its sentence ends.
WHY = "it was kept, and taken back as a mistake (plumbline log --forget)"


def run(options: argparse.Namespace, root: Path) -> int:
    """Run a verb in a folder, and return its exit code."""
    if options.verb in ("try", "confirm"):
        return (try_ if options.verb == "try" else confirm)(options, root)
    if options.verb == "log" and options.forget:
        return forget(options.forget, root)
    place = place_of(root)
    if options.verb == "page":
        return print_page(options, place)
    baseline = open_baseline(load(root))
    if options.verb == "log":
        return print_log(options, place, baseline.arm)
    bank = place.bank()
    if options.rule:
        measured = baseline.file.metric
        return print_rule(options, bank, metric=measured.called, higher=measured.direction == "higher")
    reruns = independent_runs.list_reruns(baseline, bank)
    return print_noise(options, place, baseline.beside_next(bank, place.read_ledger()), reruns)


def try_(options: argparse.Namespace, root: Path) -> int:
    """Run the working tree, or other flags, against the baseline until it is decided, or at several budgets."""
    baseline = load_baseline(options, root)
    require_baseline(options, baseline.repository)
    if options.at is not None:
        return _try_at_budgets(options, baseline)
    if options.dry_run:
        return _make_try(options, baseline, place_of(root).bank()).print_plan()
    with Folder(root).hold(shlex.join(["plumbline", "try", "-m", options.message])):
        bank = place_of(root).bank()
        baseline.folder.hold_baseline(baseline.repository)
        measuring_terms.record_fixed(baseline)
        measuring_terms.record_metric(baseline, bank)
        if (page := baseline.find_page_that_kept(options.message, options.flags)) is not None:
            return _finish_keep(options, baseline, place_of(root).page(page))
        baseline.require_same_machine(bank)
        arm_evidence.know_written_files(baseline, bank)
        source = _make_try(options, baseline, bank)
        source.mind()
        return carry_out_experiment.try_candidate(source)


def _try_at_budgets(options: argparse.Namespace, baseline: FolderBaseline) -> int:
    """Run the arms at each of several budgets, with the command as `run.budget` of `plumbline.toml` says."""
    refuse_other_questions(options)
    file = baseline.file
    declared = require_budget(file.run.budget, f"[run] of {file.path}")
    place = f"run.budget of {file.path}"
    budgets = [fill_budget(declared, multiple, place) for multiple in parse_multiples(options.at)]
    if options.dry_run:
        return _make_budgets(options, baseline, budgets).print_plan()
    with baseline.folder.hold(shlex.join(["plumbline", "try", "--at", options.at, "-m", options.message])):
        baseline.folder.hold_baseline(baseline.repository)
        measuring_terms.record_fixed(baseline)
        arm_evidence.know_written_files(baseline, place_of(file.folder).bank())
        return carry_out_budgets.try_at_budgets(_make_budgets(options, baseline, budgets))


def _make_budgets(options: argparse.Namespace, baseline: FolderBaseline, budgets: Sequence[RunBudget]) -> FolderBudgets:
    candidate, other = arms_of(options, baseline)
    question = question_at_budgets(options, baseline, candidate, other)
    bank = place_of(baseline.file.folder).bank()
    return FolderBudgets(FolderSource(options, baseline, candidate, other, question, bank), budgets)


def _make_try(options: argparse.Namespace, baseline: FolderBaseline, bank: Bank) -> FolderSource:
    candidate, other = arms_of(options, baseline)
    question = question_of(options, baseline, candidate, other)
    return FolderSource(options, baseline, candidate, other, question, bank)


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
        return [self.source.trainer.at_budget(budget) for budget in self.budgets]

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


def _finish_keep(options: argparse.Namespace, baseline: FolderBaseline, page: Path) -> int:
    """Report the try that made the baseline, and do what a kill or a hook left undone of it."""
    decision = read_decision(page.with_suffix(".json"))
    tell_decided(decision)
    baseline.finish_move()
    commits = options.commit and not baseline.is_head(baseline.arm)
    if not commits:
        append_rows(baseline.trainer(), decision)
    committed = partial(commit, baseline.repository, baseline.arm)
    follow_ups = [lambda: follow_and_write_row(committed, baseline.trainer(), decision)] if commits else []
    return print_and_follow(
        partial(print_decision, decision, page, as_json=options.json), follow_ups, as_json=options.json
    )


def confirm(options: argparse.Namespace, root: Path) -> int:
    """Run what was kept again with fresh seeds: all of it against the start, or one try against its baseline."""
    baseline = load_baseline(options, root)
    with Folder(root).hold(shlex.join(["plumbline", "confirm", *([options.name] if options.name else [])])):
        bank = place_of(root).bank()
        margin: dict[str, Any] = {}
        if options.name is None:
            candidate, other, together = baseline.arm, baseline.first, baseline.labels_kept_since_first
            if len(together) > 1:  # the gain is that of all of them, and no name of one may stand for it
                candidate = replace(candidate, words=" + ".join(together))
        else:
            decision = place_of(root).read_decision(options.name, only_kept=True)
            (candidate, other), together = map(baseline.repository.recall, decision.asked["arms"]), ()
            margin = repeat_margin(decision.terms) if not baseline.file.metric.held_out else {}
        name = f"{slug(candidate.words)}-{candidate.method}-against-{other.method}.confirmed"
        measured = baseline.file.metric.held_out or baseline.file.metric.called
        question = replace(question_again(baseline, candidate, other, name, measured), together=together, **margin)
        source = FolderSource(options, baseline, candidate, other, question, bank)
        source.trainer.held_out = bool(baseline.file.metric.held_out)
        if failing := arm_evidence.list_refusals(source.arm_evidence, candidate, baseline):
            return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
        return carry_out_experiment.confirm(source)


def forget(name: str, root: Path) -> int:
    """Take the newest keep back, which `name` names: the baseline is again what it was before, with the runs that it
    had. Nothing in git is changed.
    """
    folder, place = Folder(root), place_of(root)
    with folder.hold(f"plumbline log --forget {name}"):
        baseline = open_baseline(load(root))
        decision = place.read_decision(name, claims=False)
        arm = baseline.forget(decision.terms.name, lambda page: place.withdraw(page, WHY))
        append_rows(baseline.trainer(), replace(decision, verdict=Outcome.DISCARD))
        trainer, bank = baseline.trainer(), place.bank()
        runs = bank.list_runs(trainer.group, arm.method)
        run_count = sum(run.seed >= baseline.first_seed for run in runs)
        message = (
            f"The baseline is {arm.words} ({arm.commit[:7]}) again, with its {format_count(run_count, 'run')}; "
            f"{decision.terms.candidate} stands in the log as taken back, and in results.tsv as discard."
        )
        mine = "Your files and commits are as they were: git restore FILE or git revert COMMIT undoes the change."
        print(fold_lines(visible(f"{message}\n{mine}"), sys.stdout))
    return 0
