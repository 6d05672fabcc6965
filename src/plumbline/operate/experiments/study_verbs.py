"""Tries a method of a study, or a file of your own: its arms in the DAG, its checks, and what the command line asks."""

from __future__ import annotations

import argparse
import shlex
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments.study_arguments import (
    arms_asked,
    arms_of,
    configuration_of,
    describe_arms,
    profile_words,
    question_of,
)
from plumbline.project import Project, load
from plumbline.project.arms import METRIC, ArmsOfStudy, StudyArms
from plumbline.project.paths import EXPERIMENTS, VERDICTS
from plumbline.specs.checked_models import fingerprint_checks, make_own_methods_file
from plumbline.specs.yaml_files import load_config
from plumbline.verdict.decision.experiment import APART, BASELINE, ArmRun, Decision, ExperimentQuestion, read_decision
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.outcome import Outcome

if TYPE_CHECKING:
    from plumbline.operate.experiments.carry_out_experiment import RunGain
    from plumbline.operate.experiments.past_experiments import ExperimentFolders
    from plumbline.verdict.decision.bank import Bank


def run(options: argparse.Namespace) -> int:
    """Run a verb, and return its exit code."""
    if options.verb == "try":
        return try_(options)
    if options.verb == "confirm":
        return confirm(options)
    from plumbline.operate.experiments.past_experiments import VIEWS

    config = configuration_of(options)[0]
    project = load(config | {"studies": [config["main_study"]], "mine": "", "experiment": {}})
    if options.verb == "noise" and options.rule:
        from plumbline.operate.experiments.rule_noise import print_rule

        return print_rule(options, make_place(project).bank(), metric=METRIC, higher=False)
    return VIEWS[options.verb](options, make_place(project))


def try_(options: argparse.Namespace) -> int:
    """Run a change against its baseline until it is decided."""
    config, snakemake_words = configuration_of(options)
    project, experiment = arms_asked(options, config)
    snakemake_words = [*snakemake_words, *profile_words(options)]
    arms = arms_of(project, experiment, snakemake_words)
    source = StudySource(options, arms, question_of(options, project, arms), options.accept_implausible)
    if options.at is not None:
        from plumbline.operate.experiments import study_budgets  # numpy, which a dry run of others needs not

        return study_budgets.try_(source, arms, experiment, snakemake_words)
    if options.dry_run:
        if failing := source.check(source.question)[0]:
            return command_line.print_refusal([*failing, source.plan], Outcome.CANNOT_BE_JUDGED.exit_code)
        return command_line.print_plan(
            source.plan, as_json=options.json, candidate=arms.candidate, baseline=source.baseline_name
        )
    from plumbline.operate.experiments.carry_out_experiment import try_candidate  # numpy, which a dry run needs not

    return try_candidate(source)


def confirm(options: argparse.Namespace) -> int:
    """Run what was kept again with fresh seeds."""
    from plumbline.operate.experiments import carry_out_experiment

    configuration = configuration_of(options)[0]
    place = make_place(load(configuration))
    decision = place.read_decision(options.name, only_kept=True)
    request, terms = decision.asked, decision.terms
    config = load_config() | {"preset": request["preset"], "mine": request["mine"], "experiment": {}}
    config |= {"studies": [request["study"]], "main_study": request["study"], "work": configuration["work"]}
    project = load(config)
    arms = arms_of(project, request["experiment"], profile_words(options))
    if [arms.method(BASELINE), arms.method(arms.candidate)] != request["methods"]:
        raise PlumblineError(
            f"{terms.name}: its code is no longer what was kept; plumbline try {arms.candidate} tries what is "
            "there now, and git brings back what was kept"
        )
    question = ExperimentQuestion(
        name=f"{terms.name.removesuffix('.confirmed')}.confirmed",
        baseline=terms.baseline,
        candidate=terms.candidate,
        metric=terms.metric,
        higher=terms.higher,
        minimum_gain=terms.minimum_gain,
        equal=terms.equal,
        as_good_as=terms.as_good_as,
        bank=terms.design.bank,
        **describe_arms(arms),
    )
    looked_at = options.accept_implausible or bool(decision.checks.get("implausible"))
    source = StudySource(options, arms, question, looked_at, f"plumbline confirm {terms.name}")
    source.place, source.record = place, dict(request)
    return carry_out_experiment.confirm(source)


@dataclass
class StudySource:
    """A method of a study, or of a user's own file, and its baseline, for a try or a claim.

    Attributes:
        looked_at: whether somebody has examined a gain that no modification ever had.
        command: what holds the folder of the runs.
    """

    options: argparse.Namespace
    trainer: StudyArms
    question: ExperimentQuestion
    looked_at: bool
    command: str = ""

    @cached_property
    def place(self) -> ExperimentFolders:
        """Where experiments of this preset lie."""
        return make_place(self.trainer.project)

    @cached_property
    def bank(self) -> Bank:
        """The runs that are known, as they are when this is first read."""
        return self.place.bank()

    @cached_property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with, whatever the seed."""
        return self.trainer.run_of(BASELINE).key.rpartition("/")[0]

    @cached_property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated."""
        arms, mine = self.trainer, self.trainer.project.mine
        return {
            "preset": arms.project.name,
            "study": arms.study.code,
            "mine": mine.path if mine else "",
            "experiment": arms.settings,
            "design": self.question.design_record,
            "methods": [arms.method(BASELINE), arms.method(arms.candidate)],
        }

    @property
    def arm_evidence(self) -> Evidence:
        """Nothing: a study's arms are specs of one code."""
        return Evidence(metric=self.question.metric)

    @property
    def plan(self) -> str:
        """State what would be run."""
        from plumbline.plan import fit_to_time

        question, arms = self.question, self.trainer
        first, most = question.first_seed, question.most
        theirs = {
            "bank": range(first, first + question.bank),
            "interleaved": range(first, first + question.bank + most - 1),
            "paired": range(first + 2 * APART, first + 2 * APART + most),
        }[question.plan]
        ours = theirs if question.plan == "paired" else range(first + APART, first + APART + most)
        seeds = [(BASELINE, theirs), (arms.candidate, ours)]
        runs = [replace(arms.run_of(arm), spec=arms.spec_of(arm, seed)) for arm, each in seeds for seed in each]
        margin = ""
        if question.as_good_as:
            from plumbline.operate.experiments.margin_arguments import describe_plan  # numpy, which others need not

            margin = describe_plan(question)
        return (
            f"{question.candidate} against {question.baseline}: {arms.trainer}, {arms.budget}; {len(theirs)} runs of "
            f"the baseline, at most {most} of the candidate\n"
            f"{fit_to_time.estimate_time(arms.project, arms.study, runs).message}{margin}"
        )

    def find_decision(self, question: ExperimentQuestion) -> Decision | None:
        """What was decided of this very question, which has a page of its own."""
        page = self.place.page(question.name)
        if not (page.exists() and page.with_suffix(".json").exists()):
            return None
        decision = read_decision(page.with_suffix(".json"))
        return decision if decision.asked == self.record else None

    def check(self, question: ExperimentQuestion) -> tuple[list[str], dict[str, Any]]:
        """What the checks of a user's own method refuse before anything is trained, and their report; a study's own
        methods, which extend none, are tested where they are kept.
        """
        from plumbline.operate.preflight import dry_run
        from plumbline.operate.preflight.method_checks import check_file, checks_report

        project, arms = self.trainer.project, self.trainer
        if project.mine is None:
            return check_own_method(arms)
        run = arms.run_of(arms.candidate).spec
        wildcards = {"study": run.study, "scale": run.scale, "method": run.method, "seed": "0"}
        job = dry_run.JobToRun(rule="pretrain", wildcards=wildcards)
        failing = check_file.list_refusals(dry_run.DryRun(project=project, jobs=(job,)))
        return failing, checks_report.read_report(
            Path(project.paths.verdict_checks), project.fingerprints.checks()
        ) or {}

    def hold(self) -> AbstractContextManager[None]:
        """Hold the folder of the runs."""
        from plumbline.verdict.decision import bank

        return bank.hold(self.place.work, self.command or shlex.join(["plumbline", "try", self.options.what]))

    def look_again(self, decision: Decision) -> Decision:
        """Check causality and the loss of both arms with the weights of finished runs, before a keep is reported.

        A leak may open in training, and a gain that no modification ever had is more often a leak than a discovery.

        Returns the decision with what was seen; one that cannot be judged where an arm has a leak, which is named; and
        one that is implausible where nothing ever gained so much, unless it was `looked_at`.

        Raises:
            PlumblineError: weights of a run cannot be read.
        """
        if not decision.verdict.is_kept or decision.equal_seeds:
            return decision
        from plumbline.operate.experiments.carry_out_experiment import withhold_implausible
        from plumbline.verdict.decision.decision_sentences import write_sentence

        runs = [run for run in decision.runs if run.has_value]
        leak, repeats = check_trained_weights(self.trainer, runs, decision.terms.baseline)
        if leak:
            refused = replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, estimate=None, p=None, more=None)
            return replace(refused, sentence=write_sentence(refused, reason=leak))
        decision = replace(decision, checks={**decision.checks, "trained_weights": repeats})
        return withhold_implausible(decision, self, looked_at=self.looked_at)

    def explain_implausible(self, gain: RunGain) -> str | None:
        """What to look at, where nothing ever gained so much."""
        return explain_implausible(gain, self.trainer.project)

    def finish(self, decision: Decision) -> int:
        """Print what was decided, and return the exit code."""
        from plumbline.operate.experiments.carry_out_experiment import print_decision

        return print_decision(decision, self.place.page(decision.terms.name), as_json=self.options.json)


def check_own_method(arms: StudyArms) -> tuple[list[str], dict[str, Any]]:
    """What the checks of a method refuse that a study which extends another one brings, and their report; nothing of
    another one.
    """
    from plumbline.operate.preflight.method_checks import check_file, checks_report

    project = arms.project
    mine = make_own_methods_file(arms.settings, arms.study, project.root, project.config["data"]["source"])
    if mine is None:
        return [], {}
    path = Path(project.paths.work) / VERDICTS / mine.name / "checks.json"
    failing = check_file.check_methods(project, mine, path)
    return failing, checks_report.read_report(path, fingerprint_checks(mine)) or {}


def check_trained_weights(trainer: ArmsOfStudy, runs: Sequence[ArmRun], baseline: str) -> tuple[str, dict[str, str]]:
    """Check causality and the loss of each arm with the weights that its runs were trained to.

    Returns the leak of an arm, as the end of a sentence, or nothing; and what was read of each arm, for the page.
    `baseline`: what the baseline is called there.

    Raises:
        PlumblineError: weights of a run cannot be read.
    """
    from plumbline.operate.preflight.method_checks.finished_run_checks import TrainedRun, check_arm

    trained, texts = dict[str, list[TrainedRun]](), dict[str, str]()
    for run in sorted(runs, key=lambda run: run.arm != BASELINE):
        finished = TrainedRun(folder=trainer.folder(run.arm, run.seed), spec=trainer.spec_of(run.arm, run.seed))
        trained.setdefault(run.arm, []).append(finished)
    for arm, arm_runs in trained.items():
        name, baseline_run = (baseline, None) if arm == BASELINE else (arm, trained[BASELINE][0])
        check = check_arm(arm_runs, Path(trainer.project.paths.work), baseline_run)
        if check.leak is not None:
            return (
                f"with the weights that {name} was trained to ({check.key}), {check.leak}; what was gained may be the "
                "tokens that it was to predict"
            ), texts
        texts[name] = check.text
    return "", texts


def explain_implausible(gain: RunGain, project: Project) -> str | None:
    """What to look at, where nothing ever gained so much in a study's loss."""
    from plumbline.verdict import implausible_gain

    mean = statistics.fmean(gain.baseline_values)
    return implausible_gain.describe_implausible_gain(gain.value, gain.sigma, gain.df, mean, project.name, loss=True)


def make_place(project: Project) -> ExperimentFolders:
    """Name where experiments of a project's preset lie."""
    from plumbline.operate.experiments.past_experiments import ExperimentFolders

    return ExperimentFolders(
        pages=Path(project.paths.results) / EXPERIMENTS,
        work=Path(project.paths.work) / EXPERIMENTS,
        ledger=Path(project.paths.verdict_ledger),
        where=f"at preset {project.name}",
        first="plumbline try METHOD",
        lacking="" if Path("Snakefile").exists() else "no plumbline.toml here or above; ",
    )
