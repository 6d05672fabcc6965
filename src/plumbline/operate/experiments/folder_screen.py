"""Screens the ideas of a file in a folder with a `plumbline.toml`: each changes code or flags, and a run has some of
them.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count, format_rough_duration
from plumbline.operate.experiments import (
    arm_evidence,
    carry_out_screen,
    independent_runs,
    measuring_terms,
    screen_ideas,
)
from plumbline.operate.experiments.carry_out_experiment import RunGain, tell
from plumbline.operate.experiments.folder_arguments import load_baseline, place_of, question_again, slug
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.operate.experiments.folder_source import explain_implausible
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.operate.experiments.screen_ideas import IdeasFile
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.evidence import Evidence, parse_measures
from plumbline.verdict.formatting import name_some
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.git_call import git, index_of_tree
from plumbline.verdict.own_trainer.merged_changes import Change, ChangeMerger
from plumbline.verdict.own_trainer.snapshot import Arm
from plumbline.verdict.own_trainer.tree_warnings import list_tree_warnings
from plumbline.verdict.screen.screen_design import WITH, Factor, Level
from plumbline.verdict.screen.screen_terms import ScreenTerms


def screen(options: argparse.Namespace, root: Path) -> int:
    """Screen the ideas of a file in a folder, and return the exit code."""
    path = Path(options.ideas)
    ideas, baseline = screen_ideas.load(path), load_baseline(options, root)
    if options.dry_run:
        with _open_source(options, baseline, ideas, place_of(root).bank()) as source:
            return carry_out_screen.print_plan(source)
    with baseline.folder.hold(shlex.join(["plumbline", "screen", str(path)])):
        bank = place_of(root).bank()
        baseline.folder.hold_baseline(baseline.repository)
        measuring_terms.record_fixed(baseline)
        measuring_terms.record_metric(baseline, bank)
        baseline.require_same_machine(bank)
        with _open_source(options, baseline, ideas, bank) as source:
            return carry_out_screen.screen(source)


@contextmanager
def _open_source(
    options: argparse.Namespace, baseline: FolderBaseline, ideas: IdeasFile, bank: Bank
) -> Iterator[FolderScreen]:
    """Read every idea's change, which is kept in a temporary folder meanwhile.

    Raises:
        PlumblineError: one cannot be read, or two of them are the same.
    """
    with tempfile.TemporaryDirectory(prefix="plumbline-screen-") as folder:
        source = FolderScreen(options, baseline, ideas, bank, Path(folder))
        source.require_different()
        yield source


@dataclass
class FolderScreen:
    """The ideas of a file and a folder's baseline; `folder` is a temporary one."""

    options: argparse.Namespace
    baseline: FolderBaseline
    ideas: IdeasFile
    bank: Bank
    folder: Path
    _arms: dict[tuple[str, ...], Arm] = field(default_factory=dict)

    @cached_property
    def place(self) -> ExperimentFolders:
        """Where the folder's experiments lie."""
        return place_of(self.baseline.file.folder)

    @cached_property
    def base(self) -> Arm:
        """The baseline as it is while this runs."""
        return self.baseline.arm

    @property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with."""
        return self.base.method

    @cached_property
    def changes(self) -> dict[str, Change]:
        """What each idea with a patch or a branch changes in the code.

        Raises:
            PlumblineError: one cannot be read, or does not apply; the key, the file and the remedy are named.
        """
        path = Path(self.options.ideas)
        changes = {}
        for name, idea in self.ideas.ideas.items():
            try:
                if idea.patch:
                    changes[name] = self._merger.read_patch(path.parent / idea.patch)
                elif idea.branch:
                    changes[name] = self._merger.read_branch(idea.branch)
            except PlumblineError as error:
                key = "patch" if idea.patch else "branch"
                raise PlumblineError(f"{path}: ideas.{name}.{key}: {error}") from None
        return changes

    @cached_property
    def _merger(self) -> ChangeMerger:
        return ChangeMerger(self.baseline.repository, self.base, self.folder)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The ideas."""
        return tuple(map(Factor, self.ideas.ideas))

    @cached_property
    def conflicts(self) -> dict[tuple[str, str], str]:
        """The pairs of ideas that are never in one run, and why."""
        return (
            {(first, second): reason for first, second, reason in self._merger.list_conflicts(self.changes)}
            | {(first, second): f"both set {flag}" for first, second, flag in self.ideas.of_one_flag}
            | dict.fromkeys(self.ideas.excluded, screen_ideas.NEVER_TOGETHER)
        )

    @cached_property
    def forbidden(self) -> tuple[tuple[Level, Level], ...]:
        """The pairs of levels that are never in one run."""
        return tuple(((first, WITH), (second, WITH)) for first, second in self.conflicts)

    @cached_property
    def terms(self) -> ScreenTerms:
        """What is settled before the first run."""
        baseline, options, file = self.baseline, self.options, self.baseline.file
        question = question_again(baseline, self.base, self.base, "", file.metric.called)
        return ScreenTerms(
            name=f"screen-{slug(Path(options.ideas).stem)}",
            baseline=question.baseline,
            metric=question.metric,
            higher=question.higher,
            minimum_gain=file.decide.minimum_gain,
            changes={name: idea.text for name, idea in self.ideas.ideas.items()},
            unit=question.unit,
            trainer=question.trainer,
            budget=question.budget,
            size=question.size,
            varies=question.varies,
            equal=parse_measures(options.equal, "--equal") or file.decide.equal,
            # The seeds before it are those of the baseline's runs, made or not.
            first_seed=max(options.first_seed or 0, baseline.first_seed + file.decide.baseline_runs),
            **carry_out_screen.read_rule(options, self.factors),
        )

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        arms = [self.make_arm((name,)) for name in self.ideas.ideas]
        ideas = {arm.words: {"commit": arm.commit, "flags": list(arm.flags), "method": arm.method} for arm in arms}
        return {
            "trainer": self.baseline.trainer().group,
            "baseline": self.base.record | {"method": self.base.method},
            "ideas": ideas,
            "never_together": [list(pair) for pair in self.conflicts],
        }

    def make_arm(self, names: tuple[str, ...]) -> Arm:
        """Make the arm that has these ideas: the baseline where there are none."""
        if not names:
            return self.base
        if names not in self._arms:
            flags = [*self.base.flags, *(word for name in names for word in self.ideas.ideas[name].words)]
            changes = [self.changes[name] for name in names if name in self.changes]
            self._arms[names] = self._merger.make_arm(changes, flags, " + ".join(names))
        return self._arms[names]

    def require_different(self) -> None:
        """Refuse two ideas that are the same; several together may well be another one, or another several.

        Raises:
            PlumblineError: two are; both are named.
        """
        names = dict[str, str]()
        for name in self.ideas.ideas:
            first = names.setdefault(self.make_arm((name,)).method, name)
            if first != name:
                raise PlumblineError(f"{self.options.ideas}: ideas.{name}: is the same as ideas.{first}; take one out")

    def hold(self) -> AbstractContextManager[None]:
        """Nothing: the folder is held already."""
        return nullcontext()

    def trainer(self, arms: Mapping[str, Mapping[str, str]]) -> CommandTrainer:
        """Make what trains these arms."""
        idea_arms = {name: self.make_arm(self._list_ideas(settings)) for name, settings in arms.items()}
        return replace(self.baseline.trainer(), arms={BASELINE: self.base} | idea_arms, compared_with="")

    @staticmethod
    def _list_ideas(settings: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(name for name, level in settings.items() if level == WITH)

    def name_level(self, level: Level) -> str:
        """Name an idea."""
        return level[0]

    def arm_evidence(self, settings: Mapping[str, str]) -> Evidence:
        """What is known of an arm beside its runs: the files that differ from the baseline, and those that measure."""
        arm, metric = self.make_arm(self._list_ideas(settings)), self.baseline.file.metric.called
        return arm_evidence.gather(self.baseline, arm, self.base, metric, "screen")

    def list_refusals(self) -> list[str]:
        """List why nothing may be run: ideas that change what measures, or a baseline whose runs are no draws."""
        refusals = dict[str, None]()
        for name in self.ideas.ideas:
            evidence = self.arm_evidence({name: WITH})
            refusals |= dict.fromkeys(arm_evidence.list_refusals(evidence, self.make_arm((name,)), self.baseline))
        trainer = self.baseline.trainer()
        runs = self.baseline.list_runs(trainer, self.bank)
        reason = independent_runs.explain_dependence(trainer, runs)
        return [*refusals, *([f"nothing was run: {reason}"] if reason else [])]

    def take_bank(self) -> list[ArmRun]:
        """Have the baseline's runs made that are not there, and return the first ones."""
        runs = independent_runs.take_bank(self.baseline, self.baseline.trainer(), self.bank)
        return runs[: self.baseline.file.decide.baseline_runs]

    def remark(self) -> None:
        """Report what a user may not expect: pairs that are never in one run, and files of the working tree that are in
        no run.
        """
        for reason in dict.fromkeys(self.conflicts.values()):
            pairs = [f"{first} with {second}" for (first, second), why in self.conflicts.items() if why == reason]
            tell(f"never in one run: {name_some(pairs)} ({reason})")
        repository = self.baseline.repository
        run = self.baseline.file.run
        for warning in list_tree_warnings(repository, self.base.commit, run.command, run.data):
            tell(warning)
        with index_of_tree(repository.top) as environment:
            equal = git(repository.top, "diff", "--quiet", self.base.commit, environment=environment, check=False)
        if equal.returncode:
            tell(
                f"mind: the working tree is not the baseline ({self.base.words}, {self.base.commit[:7]}): what differs "
                "is in no run, unless an idea has it"
            )

    def look_again(self, arms: Mapping[str, Mapping[str, str]], runs: Sequence[ArmRun]) -> None:
        """Nothing more is known of a folder's runs."""

    def explain_implausible(self, gain: RunGain) -> str | None:
        """What to look at, where no change of one thing gains so much."""
        return explain_implausible(gain, higher=self.terms.higher)

    def describe_set(self, settings: Mapping[str, str]) -> str:
        """State how the ideas that were chosen are kept: `try` keeps them as one change, with runs of its own."""
        names = self._list_ideas(settings)
        arm = self.make_arm(names)
        takes = f"git cherry-pick --no-commit {arm.commit[:12]} && " if arm.tree != self.base.tree else ""
        flags = shlex.join(arm.flags[len(self.base.flags) :])
        return f"{takes}plumbline try -m {shlex.quote(arm.words)}{f' -- {flags}' if flags else ''}"

    @property
    def most_at_once(self) -> int:
        """So many as run concurrently, but no fewer than eight: each has a copy of the code meanwhile."""
        return max(8, self.baseline.trainer().at_once)

    def estimate_time(
        self, rows: Sequence[Mapping[str, str]], first_seed: int, missing: int
    ) -> tuple[str, float | None]:
        """Estimate by the median of the baseline's runs how long those take that are missing."""
        trainer = self.baseline.trainer()
        runs = self.bank.list_runs(trainer.group, self.base.method)
        past = [run.seconds for run in runs if run.seconds and run.has_value]
        if not past:
            return "how long one takes is known when the baseline has been run", None
        took = statistics.median(past) * missing / trainer.at_once
        return f"{format_rough_duration(took)}, by the median of {format_count(len(past), 'run')} of the baseline", took
