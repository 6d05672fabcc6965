"""Screens the methods of a study: each slot in which they differ from the baseline is a factor, and a run has in each
slot what one of them has there.

What the slots refuse together is never in one run. Nothing here knows a method by its name: levels are told from the
methods' specs (`plumbline.specs.combined_methods`).
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_rough_duration
from plumbline.operate.experiments import carry_out_screen, study_arguments
from plumbline.operate.experiments.carry_out_experiment import RunGain, tell
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.operate.experiments.study_verbs import (
    check_own_method,
    check_trained_weights,
    explain_implausible,
    make_place,
)
from plumbline.plan import fit_to_time, machines
from plumbline.project import Project
from plumbline.project.arms import METRIC, UNIT, ScreenArms, StudyArms
from plumbline.specs import combined_methods, experiment_runs, study_names
from plumbline.specs.components import SLOTS
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run, Study
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, refuse
from plumbline.verdict.decision import bank as banks
from plumbline.verdict.decision.bank import LOOP, Bank
from plumbline.verdict.decision.experiment import BANK, BASELINE, FIRST_SEED, ArmRun
from plumbline.verdict.evidence import Evidence, parse_measures
from plumbline.verdict.screen.screen_design import Factor, Level
from plumbline.verdict.screen.screen_terms import ScreenTerms


def run(options: argparse.Namespace) -> int:
    """Screen the methods of a study, and return the exit code."""
    source = open_source(options)
    return carry_out_screen.print_plan(source) if options.dry_run else carry_out_screen.screen(source)


def open_source(options: argparse.Namespace) -> StudyScreen:
    """Read from a command line which methods of which study are screened, and how long a run is.

    Raises:
        PlumblineError: there is no such study or method, or a method that was named changes more than slots.
    """
    config, arguments = study_arguments.configuration_of(options)
    project = study_arguments.load_project(options.study, config)
    study = project.study(options.study)
    scale, against = (
        choose(options, study) for choose in (study_arguments.choose_scale, study_arguments.choose_baseline)
    )
    settings: dict[str, Any] = {"study": study.name, "scale": scale, "against": against}
    settings |= study_arguments.choose_budget(options, project, study, scale)
    arguments = [*arguments, *study_arguments.profile_words(options)]
    return StudyScreen(options, project, study, settings, arguments)


@dataclass
class StudyScreen:
    """The methods of a study and their baseline.

    Attributes:
        settings: `config.experiment` without its arms.
        words: further arguments for Snakemake.
    """

    options: argparse.Namespace
    project: Project
    study: Study
    settings: dict[str, Any]
    words: Sequence[str]

    @property
    def against(self) -> str:
        """The method that is the first level of every factor."""
        return str(self.settings["against"])

    @cached_property
    def every_method(self) -> dict[str, RunSpec]:
        """Each method of the study, and those that were named -> its spec with the seed 0.

        Raises:
            PlumblineError: one that was named is none.
        """
        definition = {"methods": self.study.definition["methods"] | self.study.definition.get("arms", {})}
        for name in self.options.methods:
            study_names.find_entry(definition, name.partition(".")[0], self.study.file, "--methods")
        names = dict.fromkeys([self.against, *self.study.methods, *self.options.methods])
        return {run.spec.method: run.spec for run in self._load([{"method": name, "seeds": [0]} for name in names])}

    def _load(self, arms: list[dict[str, Any]]) -> list[Run]:
        source = self.project.config["data"]["source"]
        loaded = experiment_runs.load(self.settings | {"arms": arms}, self.study, self.project.root, source)
        return list(loaded.runs.values())

    @cached_property
    def left_out(self) -> dict[str, list[str]]:
        """The methods that change more than slots -> the keys of what they change beside."""
        specs = self.every_method
        changes = {name: combined_methods.find_other_changes(spec, specs[self.against]) for name, spec in specs.items()}
        return {name: keys for name, keys in changes.items() if keys}

    @cached_property
    def methods(self) -> dict[str, RunSpec]:
        """The methods whose changes are levels, with the baseline first.

        Raises:
            PlumblineError: one that was named changes more than slots.
        """
        names = self.options.methods or [name for name in self.study.methods if name not in self.left_out]
        for name in names:
            if name in self.left_out:
                raise PlumblineError(
                    f"--methods: {name!r} changes {self.left_out[name][0]} ({self.study.file}), which is in no slot, "
                    f"so that it cannot be combined; leave it out, or compare it alone: plumbline try {name}"
                )
        return {name: self.every_method[name] for name in dict.fromkeys([self.against, *names])}

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The slots, each with the methods that bring something of their own to it.

        Raises:
            PlumblineError: there is none.
        """
        levels = combined_methods.find_levels(self.methods, self.against)
        if not levels:
            raise PlumblineError(
                f"no method of the study {self.study.name!r} differs from {self.against!r} in a slot; name some with "
                "--methods (plumbline ls variants), or another study"
            )
        return tuple(Factor(slot, methods) for slot, methods in levels.items())

    @property
    def levels(self) -> list[Level]:
        """All levels but the baseline's."""
        return [(factor.name, level) for factor in self.factors for level in factor.levels[1:]]

    @cached_property
    def refused_pairs(self) -> dict[tuple[Level, Level], str]:
        """Pairs of levels that slots refuse -> how they say it.

        Raises:
            PlumblineError: a level is refused without any other one.
        """
        for level in self.levels:
            if reason := self._explain_refusal([level]):
                raise PlumblineError(
                    f"{self.name_level(level)} cannot be trained alone: {reason}; leave it out with --methods"
                )
        pairs = {pair: self._explain_refusal(pair) for pair in combinations(self.levels, 2) if pair[0][0] != pair[1][0]}
        return {pair: reason for pair, reason in pairs.items() if reason}

    def _explain_refusal(self, levels: Sequence[Level]) -> str:
        """Make the spec and the model of a combination, without memory, and state what refuses it; empty if nothing."""
        from plumbline.model.decoder import on_meta  # torch

        try:
            on_meta(self._combine(dict(levels)).model)
        except PlumblineError as error:
            return str(error)
        return ""

    def _combine(self, settings: Mapping[str, str]) -> RunSpec:
        """The spec of a combination, with the seed 0."""
        return combined_methods.combine(
            self.methods[self.against], {slot: self.methods[method] for slot, method in settings.items()}
        )

    @property
    def forbidden(self) -> tuple[tuple[Level, Level], ...]:
        """The pairs of levels that are never in one run."""
        return tuple(self.refused_pairs)

    def trainer(self, arms: Mapping[str, Mapping[str, str]]) -> ScreenArms:
        """Make what trains these arms: a combination that a method of the study has too is that method."""
        entries = {BASELINE: {"method": self.against}} | {name: self._make_arm(each) for name, each in arms.items()}
        trainer = ScreenArms(project=self.project, settings=self.settings, arms=entries, snakemake_options=self.words)
        runs = [trainer.run_of(arm) for arm in entries]
        return replace(trainer, at_once=machines.load(self.project.config["machine"]).runs_at_once(runs))

    def _make_arm(self, settings: Mapping[str, str]) -> dict[str, Any]:
        levels = {slot: method for slot, method in settings.items() if method != self.against}
        method = combined_methods.find_method(self._combine(levels), self.every_method)
        return {"levels": levels} if method is None else {"method": method}

    def name_level(self, level: Level) -> str:
        """Name a level: the method, and the slot too where the method changes others as well."""
        slot, method = level
        return combined_methods.name_level(slot, method, self.methods[method], self.methods[self.against])

    @cached_property
    def terms(self) -> ScreenTerms:
        """What is settled before the first run."""
        options, trainer = self.options, self.trainer({})
        return ScreenTerms(
            name=f"screen-{self.study.name}-{trainer.spec.scale}-against-{self.against}",
            baseline=self.against,
            metric=METRIC,
            higher=False,
            changes={factor.name: self._describe_factor(factor) for factor in self.factors},
            unit=UNIT,
            trainer=trainer.trainer,
            budget=trainer.budget,
            size=trainer.size,
            varies=trainer.varies,
            equal=parse_measures(options.equal, "--equal"),
            first_seed=max(options.first_seed or 0, FIRST_SEED + BANK),
            **carry_out_screen.read_rule(options, self.factors),
        )

    def _describe_factor(self, factor: Factor) -> str:
        """What the levels of a factor choose, by the components' names, or by the options where these are the same."""
        choices = [combined_methods.list_choices(self.methods[method])[factor.name] for method in factor.levels]
        return ", ".join(combined_methods.describe_choice(choice, choices[0]) for choice in choices)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        levels = {"/".join(level): dict([level]) for level in self.levels}
        trainer = self.trainer(levels)
        return {
            "preset": self.project.name,
            "study": self.study.code,
            "experiment": self.settings,
            "baseline": trainer.method(BASELINE),
            "levels": {name: trainer.method(name) for name in levels},
        }

    @cached_property
    def place(self) -> ExperimentFolders:
        """Where experiments of this preset lie."""
        return make_place(self.project)

    @cached_property
    def bank(self) -> Bank:
        """The runs that are known, as they are when this is first read."""
        return self.place.bank()

    @cached_property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with, whatever the seed."""
        return self.trainer({}).run_of(BASELINE).key.rpartition("/")[0]

    def hold(self) -> AbstractContextManager[None]:
        """Hold the folder of the runs."""
        return banks.hold(self.place.work, shlex.join(["plumbline", "screen", "--study", self.study.name]))

    def arm_evidence(self, settings: Mapping[str, str]) -> Evidence:
        """Nothing: a study's arms are specs of one code."""
        return Evidence(metric=METRIC)

    def list_refusals(self) -> list[str]:
        """List what the checks of a user's own methods refuse before anything is trained."""
        refusals = dict[str, None]()
        for method in list(self.methods)[1:]:
            arms = StudyArms(project=self.project, settings=self.settings | {"method": method}, candidate=method)
            refusals |= dict.fromkeys(check_own_method(arms)[0])
        return list(refusals)

    def take_bank(self) -> list[ArmRun]:
        """Have the baseline's first runs made that are not there: beside what seeds alone do, levels that do not add up
        are seen.
        """
        trainer = self.trainer({})
        method, seeds = trainer.method(BASELINE), range(FIRST_SEED, FIRST_SEED + BANK)
        runs_by_seed = {run.seed: run for run in self.bank.list_runs(trainer.group, method)}
        if missing := [(BASELINE, seed) for seed in seeds if seed not in runs_by_seed]:
            for run in trainer.run(missing):
                self.bank.append(trainer.group, method, run, LOOP)
                runs_by_seed[run.seed] = run
        return [runs_by_seed[seed] for seed in seeds]

    def remark(self) -> None:
        """Report what is in no run."""
        for (first, second), reason in self.refused_pairs.items():
            tell(f"{self.name_level(first)} and {self.name_level(second)} are never in one run: {reason}")
        for name, keys in self.left_out.items():
            tell(f"{name} is left out: it changes {keys[0]}, which is in no slot")

    def describe_set(self, settings: Mapping[str, str]) -> str:
        """State how the levels that were chosen can be kept: as a method of a file of the user's own."""
        levels = {slot: method for slot, method in settings.items() if method != self.against}
        spec = self._combine(levels)
        parts: dict[str, Any] = {}
        for slot in levels:
            place = parts.setdefault("model", {}) if slot in SLOTS else parts
            place[slot] = combined_methods.list_choices(spec)[slot]
        return f"as a method of a file that extends {self.study.code} (docs/quick.md): {json.dumps(parts)}"

    def look_again(self, arms: Mapping[str, Mapping[str, str]], runs: Sequence[ArmRun]) -> CheckAnswer:
        """Check causality and the loss of what was chosen and of the baseline with the weights of their fresh runs."""
        leak, texts = check_trained_weights(self.trainer(arms), runs, self.against)
        if leak:
            return refuse(f"{leak}: leave out with --methods what does that")
        return holds("; ".join(f"{name}: {text}" for name, text in texts.items()))

    def explain_implausible(self, gain: RunGain) -> str | None:
        """What to look at, where nothing ever gained so much."""
        return explain_implausible(gain, self.project)

    @property
    def most_at_once(self) -> int:
        """All that are missing: each call of Snakemake takes seconds to begin, and makes no finished run again."""
        return sys.maxsize

    def estimate_time(
        self, rows: Sequence[Mapping[str, str]], first_seed: int, missing: int
    ) -> tuple[str, float | None]:
        """Estimate by the plan how long the design's runs take; those that confirm what is chosen as its runs do."""
        trainer = self.trainer({str(number): row for number, row in enumerate(rows)})
        runs = [
            replace(trainer.run_of(str(number)), spec=trainer.spec_of(str(number), first_seed + number))
            for number in range(len(rows))
        ]
        expected = fit_to_time.estimate_time(self.project, self.study, runs)
        message = f"of the design, {expected.message[0].lower()}{expected.message[1:].removesuffix('.')}"
        if not expected.runs:
            return message, None
        took = expected.seconds * missing / expected.runs
        return f"{format_rough_duration(took)} in all; {message}", took
