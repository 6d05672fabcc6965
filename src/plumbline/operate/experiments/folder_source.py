"""Supplies what an experiment needs of a folder with a `plumbline.toml`: a commit and what it is compared with, run by
the folder's own command.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from plumbline.core import command_line
from plumbline.core.formats import format_count, format_rough_duration
from plumbline.operate.experiments import arm_evidence, independent_runs
from plumbline.operate.experiments.carry_out_experiment import (
    RunGain,
    SettledExperiment,
    describe_earlier,
    describe_rule,
    print_decision,
    settle_margin,
    settle_try,
    tell,
    with_own_page,
    withhold_implausible,
)
from plumbline.operate.experiments.folder_arguments import place_of
from plumbline.operate.experiments.folder_baseline import ELSEWHERE, FolderBaseline, commit
from plumbline.operate.experiments.margin_arguments import describe_plan, name_claim
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict import implausible_gain
from plumbline.verdict.comparability import guards
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.decision_sentences import write_sentence
from plumbline.verdict.decision.experiment import BASELINE, Decision, ExperimentQuestion, read_decision
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.requests import only_a_seed
from plumbline.verdict.own_trainer.snapshot import Arm
from plumbline.verdict.own_trainer.trainer_file import INJECT, NAME
from plumbline.verdict.own_trainer.tree_warnings import list_tree_warnings

#: The word of `results.tsv` for a verdict; those that autoresearch has, where it has one.
STATUS = {
    Outcome.KEEP: "keep",
    Outcome.AS_GOOD: "keep",
    Outcome.DISCARD: "discard",
    Outcome.UNDECIDED: "undecided",
    Outcome.IMPLAUSIBLE: "implausible",
    Outcome.CRASHED: "crash",
}


@dataclass
class FolderSource:
    """A commit and what it is compared with, run by a folder's command, for a try or a claim."""

    options: argparse.Namespace
    baseline: FolderBaseline
    candidate: Arm
    other: Arm
    question: ExperimentQuestion
    bank: Bank

    @cached_property
    def place(self) -> ExperimentFolders:
        """Where the folder's experiments lie."""
        return place_of(self.baseline.file.folder)

    @cached_property
    def trainer(self) -> CommandTrainer:
        """What trains the arms."""
        return self.baseline.trainer(self.candidate, self.other)

    @cached_property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with."""
        return self.trainer.method(BASELINE)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        return {"trainer": self.trainer.group, "design": self.question.design_record} | self.arms_record

    @property
    def arms_record(self) -> dict[str, Any]:
        """The arms, to be requested again."""
        arms = (self.candidate, self.other)
        return {"arms": [arm.record for arm in arms], "methods": [arm.method for arm in arms]}

    @cached_property
    def arm_evidence(self) -> Evidence:
        """What is known of the arms beside their runs: the files that differ, and those that measure."""
        return arm_evidence.gather(self.baseline, self.candidate, self.other, self.question.metric, self.options.verb)

    def print_plan(self) -> int:
        """Print what would be run."""
        candidate, other, trainer, bank = self.candidate, self.other, self.trainer, self.bank
        print_plan = partial(command_line.print_plan, as_json=self.options.json)
        question = with_own_page(self.question, self.record)
        if (decision := self.find_decision(question)) is not None:
            return print_plan(f"{describe_earlier(decision)}: {decision.sentence}", runs_at_most=0, seconds_at_most=0.0)
        if failing := self.check(question)[0]:
            return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
        question = settle_margin(self, question, make=False) if question.as_good_as else question
        settled = settle_try(self, question)
        theirs = [run for step, _ in settled.plan.steps for run in step if run[0] == BASELINE]
        banked_count = sum(bank.find_run(trainer.run_id(*run)) is not None for run in theirs)
        command = f"{question.trainer} {shlex.join(candidate.flags)}".strip()
        expected, missing, seconds = self._estimate_time(settled)
        plan = (
            f"{candidate.words} against {other.words}: {command}. {describe_rule(settled.terms)} Of the baseline's "
            f"{len(theirs)} runs {banked_count} are there. {expected}{describe_plan(question)}"
        )
        more: dict[str, Any] = {"command": command, "runs_at_most": missing, "seconds_at_most": seconds}
        return print_plan(plan, candidate=candidate.words, baseline=other.words, **more)

    def _estimate_time(self, settled: SettledExperiment) -> tuple[str, int, float | None]:
        """State how many runs are to be made at most, and how long they take by the baseline's that are there; with the
        two numbers, the seconds None if no run is there.
        """
        trainer, bank = self.trainer, self.bank
        runs = [run for step, _ in settled.plan.steps for run in step]
        missing = sum(bank.find_run(trainer.run_id(*run)) is None for run in runs)
        past = self.list_past_seconds()
        text = f"At most {format_count(missing, 'run')} to be made"
        if not past:
            return f"{text}; how long one takes is known when the first has been made.", missing, None
        took = statistics.median(past) * math.ceil(missing / trainer.at_once)
        return (
            f"{text}: {format_rough_duration(took)}, by the median of {format_count(len(past), 'run')} of the "
            "baseline.",
            missing,
            took,
        )

    def list_past_seconds(self) -> list[float]:
        """List how long each run of the baseline took that has a value."""
        theirs = self.bank.list_runs(self.trainer.group, self.trainer.method(BASELINE))
        return [run.seconds for run in theirs if run.seconds and run.has_value]

    def mind(self) -> None:
        """Report what may make the runs differ from what is meant."""
        run, repository = self.baseline.file.run, self.baseline.repository
        for warning in list_tree_warnings(repository, self.candidate.commit, run.command, run.data):
            tell(warning)
        lines = repository.list_changed_lines(self.other.commit, self.candidate.commit) if run.seed == INJECT else None
        if lines and self.candidate.flags == self.other.flags and only_a_seed(*lines):
            tell("mind: this changes only a seed, which every run changes anyway")

    def find_decision(self, question: ExperimentQuestion) -> Decision | None:
        """What was decided of these very arms, whatever it was called: of this question, or of any other where fresh
        runs did not confirm a keep, after which there is no second try.
        """
        candidate, baseline = self.record["methods"]
        for path in self.place.pages.glob(f"*-{candidate}-against-{baseline}*.json"):
            decision = read_decision(path)
            if (
                any(decision.asked.get(key) != self.record[key] for key in ("trainer", "methods"))
                or decision.terms.claim
            ):
                continue
            is_same = decision.asked.get("design") == self.record["design"]
            is_same = is_same and decision.verdict in STATUS and decision.verdict != Outcome.CRASHED
            unread = (
                decision.verdict.is_kept and question.fresh_runs and not (decision.fresh or decision.equal_seeds)
            )  # kept with --baseline
            if (decision.is_unconfirmed or (is_same and not unread)) and path.with_suffix(".md").exists():
                return decision
        return None

    def check(self, question: ExperimentQuestion) -> tuple[list[str], dict[str, Any]]:
        """List why the arms cannot be compared, and refuse a second try of code that has fresh runs.

        Raises:
            PlumblineError: it has some.
        """
        self.baseline.require_only_try(self.trainer, question.candidate, self.bank, question.name)
        return self.list_refusals(), {}

    def list_refusals(self) -> list[str]:
        """List why the arms cannot be compared, a baseline whose runs are no draws of their own among the reasons."""
        failing = arm_evidence.list_refusals(self.arm_evidence, self.candidate, self.baseline)
        runs = self.baseline.list_runs(self.trainer, self.bank)
        reason = independent_runs.explain_dependence(self.trainer, runs)
        reason = reason or guards.explain_unstated(self.question.guards, [self.trainer.evidence(run) for run in runs])
        return failing + ([f"nothing was run: {reason}"] if reason else [])

    def hold(self) -> AbstractContextManager[None]:
        """Nothing: the folder is held already, since its baseline may not move while a question is made of it."""
        return nullcontext()

    def look_again(self, decision: Decision) -> Decision:
        """Request a check of a gain that is larger than any, and run what is kept again with fresh seeds."""
        runs = self.baseline.list_runs(self.trainer, self.bank)
        independent_runs.run_seeds_twice(self.baseline, self.trainer, self.bank, runs)
        looked = self._examine_decision(decision)
        if not looked.verdict.is_kept or not looked.terms.fresh_runs or looked.equal_seeds:
            return looked
        return self.baseline.run_again(looked, self.trainer, self.bank, self.options.message, self.question.first_seed)

    def _examine_decision(self, decision: Decision) -> Decision:
        """Request a check of a gain that is larger than any, and name the parts of the machine that differ, where means
        would cross them, with what to run.
        """
        if decision.equal_seeds or (decision.verdict.is_kept and len(decision.terms.together) > 1):
            return decision  # each was examined when it was kept, and no bound is known of what many gain
        if decision.verdict.is_kept:
            return withhold_implausible(decision, self, looked_at=self.options.accept_implausible)
        if decision.verdict != Outcome.CANNOT_BE_JUDGED or not all(run.has_value for run in decision.runs):
            return decision
        differ = self.trainer.list_machine_changes(decision.runs)
        reason = f"of the baseline, {ELSEWHERE.format('; '.join(differ))}"
        return replace(decision, sentence=write_sentence(decision, reason=reason)) if differ else decision

    def explain_implausible(self, gain: RunGain) -> str | None:
        """What to look at, where nothing ever gained so much."""
        return explain_implausible(gain, higher=self.question.higher)

    def finish(self, decision: Decision) -> int:
        """Print what was decided, let a keep be the baseline, write its row, commit it if wanted, and print what
        is next. All of it is done again where a try was killed in it.
        """
        options, baseline, trainer = self.options, self.baseline, self.trainer
        line, is_keep = "", decision.verdict.is_kept
        if is_keep and options.baseline is None:
            request = {"message": options.message, "flags": options.flags, "page": decision.terms.name}
            line = baseline.move(self.candidate, decision, request)
        if decision.fresh and decision.verdict == Outcome.CANNOT_BE_JUDGED:
            baseline.forget_fresh_runs(trainer, decision.terms.candidate)
        if not (row_follows := options.commit and is_keep):  # else the row names the commit, which is yet to be made
            append_rows(trainer, decision)
        log = self._find_lost_log(decision)
        more = {"commit": self.candidate.commit} | ({"log": str(log)} if log else {})
        page = self.place.page(decision.terms.name)
        follow = partial(self._format_next_step, decision, log)
        follow_ups = (
            lambda: line,
            (lambda: follow_and_write_row(follow, trainer, decision)) if row_follows else follow,
        )
        return print_and_follow(
            partial(print_decision, decision, page, as_json=options.json, **more), follow_ups, as_json=options.json
        )

    def _format_next_step(self, decision: Decision, log: Path | None) -> str:
        """State what is next for whoever made the change."""
        if decision.verdict.is_kept:
            repository, changed = self.baseline.repository, not self.baseline.is_head(self.candidate)
            if self.options.commit and changed:
                return commit(repository, self.candidate)
            change = f"{repository.to_commit(self.candidate.words)} (nothing was committed); " if changed else ""
            return f"Next: {change}{name_claim(decision)}."
        if decision.verdict == Outcome.CRASHED:
            return f"Next: {f'the whole log is {log}; ' if log else ''}plumbline try again when that is put right."
        if decision.verdict == Outcome.CANNOT_BE_JUDGED:
            return "" if log is None else _of_a_lost_baseline(log)
        if decision.verdict == Outcome.IMPLAUSIBLE:
            look = "look at what the change does (git diff)"
            return f"Next: {look}; plumbline try again with --accept-implausible keeps it."
        undo = "." if self.options.flags else "; git diff shows this one, git restore FILE undoes it."
        return f"Next: another change{undo}"

    def _find_lost_log(self, decision: Decision) -> Path | None:
        """The log of a run that has no value, where that decided; None if each has one."""
        lost_runs = [run for run in decision.runs if not run.has_value]
        if not lost_runs:
            return None
        arm = self.other if lost_runs[0].arm == BASELINE else self.candidate
        return self.baseline.folder.log(arm.method, lost_runs[0].seed)


def explain_implausible(gain: RunGain, *, higher: bool) -> str | None:
    """What to look at, where a change of a trainer of which nothing is known gains more than any."""
    positive_loss = not higher and min(*gain.baseline_values, *gain.candidate_values) > 0
    mean = statistics.fmean(gain.baseline_values)
    return implausible_gain.describe_implausible_own_gain(
        gain.value, gain.sigma, gain.df, mean, positive_loss=positive_loss
    )


def print_and_follow(decision: Callable[[], int], follow_ups: Iterable[Callable[[], str]], *, as_json: bool) -> int:
    """Print a decision, and do and report what follows it, which may yet be refused (a commit, by a hook): as JSON the
    decision comes last, since there is one object, and it may be an error.
    """
    code = None if as_json else decision()
    for follow in follow_ups:
        if line := follow():
            tell(line)
    return decision() if code is None else code


def follow_and_write_row(follow: Callable[[], str], trainer: CommandTrainer, decision: Decision) -> str:
    """Do what follows a decision, and write its row, also where a commit is refused."""
    try:
        return follow()
    finally:
        append_rows(trainer, decision)


def _of_a_lost_baseline(log: Path) -> str:
    """What is to be done where a run of the baseline has no value."""
    lines = [f"{log} ends with:", *(f"  {line}" for line in metric.last_lines(log))]
    lines.append(
        f"Next: put right what broke the baseline ({NAME}, if it is its metric or its command; or the code, and commit "
        "that), then: plumbline setup-trainer, which takes its runs."
    )
    return "\n".join(lines)


def append_rows(trainer: CommandTrainer, decision: Decision) -> None:
    """Write a decision's row of `results.tsv`, of what was judged; before the first one the baseline's, as readers of
    the file expect it."""
    if decision.verdict == Outcome.CANNOT_BE_JUDGED:
        return
    for arm in (*([] if trainer.folder.has_rows() else [BASELINE]), decision.terms.candidate):
        record = decision.asked["arms"][arm == BASELINE]
        head = trainer.repository.arm("HEAD")  # where it is this code, it is the commit that the history has
        is_head = head.tree == trainer.repository.recall(record).tree
        commits = (head.commit[:7], record["commit"][:7]) if is_head else (record["commit"][:7],)
        trainer.folder.append_row(decision.terms.metric, _row(trainer, decision, arm, commits[0]), known_as=commits)


def _row(trainer: CommandTrainer, decision: Decision, arm: str, commit: str) -> tuple[str, ...]:
    """The columns of autoresearch, then the number of runs and p; of the fresh runs, where there are any."""
    runs = [run for run in decision.runs if run.arm == arm]
    values = decision.baseline_values if arm == BASELINE else decision.fresh_values or decision.candidate_values
    mean, memory = sum(values) / max(1, len(values)), trainer.memory_gb(runs) or 0.0
    cells = (commit, f"{mean:.6f}", f"{memory:.1f}")
    if arm == BASELINE:
        return (*cells, STATUS[Outcome.KEEP], decision.terms.baseline, str(len(values)), "")
    p = "" if decision.estimate is None else f"{decision.estimate.p:.3g}"
    return (*cells, STATUS[decision.verdict], arm, str(len(values)), p)
