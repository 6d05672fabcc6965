"""Joins what the verbs of an experiment need: arms in the DAG, a method's checks, the loop, the ledger, the page."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, visible
from plumbline.operate.experiments.study_arguments import (
    arms_asked,
    arms_of,
    configuration_of,
    profile_words,
    question_again,
    question_of,
    record_of,
)
from plumbline.project import Project, load
from plumbline.project.arms import StudyArms
from plumbline.project.paths import EXPERIMENTS, VERDICTS
from plumbline.specs.checked_models import of_experiment
from plumbline.specs.experiment_runs import INITIALISATION
from plumbline.specs.yaml_files import load_config
from plumbline.verdict.decision.outcome import APART, BASELINE, FIRST_SEED, ExperimentQuestion
from plumbline.verdict.outcome import Outcome

if TYPE_CHECKING:
    from plumbline.operate.experiments.experiment_folders import ExperimentFolders

#: What decides where the command line does not say it.
DEFAULTS = {
    "alpha": 0.05,
    "useful_gain_sigmas": 2.0,
    "session": "each",
    "vary_by_seed": INITIALISATION,
    "first_seed": FIRST_SEED,
}


def try_(given: argparse.Namespace) -> int:
    """Run a change against its baseline until it is decided."""
    for name, value in DEFAULTS.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    config, words = configuration_of(given)
    project, asked = arms_asked(given, config)
    arms = arms_of(project, asked, [*words, *profile_words(given)])
    question = question_of(given, project, arms)
    if given.dry_run:
        if failing := _checks(project, arms)[0]:
            return _refused([*failing, _plan(question, arms)])
        return command_line.print_plan(
            _plan(question, arms), as_json=given.json, candidate=arms.candidate, baseline=_baseline(arms)
        )
    # numpy and scipy, which a dry run needs not
    from plumbline.operate.experiments.carry_out_experiment import decide, page_of, settle_try, told, with_own_page
    from plumbline.operate.experiments.checks_before_keep import looked_at_again
    from plumbline.verdict.decision import bank as banks
    from plumbline.verdict.decision import decision_records

    place = _place(project)
    record = record_of(project, asked, question, arms)
    question = with_own_page(question, record)
    page = page_of(place, question.name)
    if page.with_suffix(".json").exists():
        known = decision_records.read(page.with_suffix(".json"))
        if (
            known.asked == record
            and page.exists()
            and not (known.verdict == Outcome.IMPLAUSIBLE and given.accept_implausible)
        ):
            print(f"decided already, {known.at}; for other seeds: --first-seed", file=sys.stderr)
            return told(known, page, as_json=given.json)
    failing, checks = _checks(project, arms)
    if failing:
        return _refused(failing)
    with banks.hold(place.work, shlex.join(["plumbline", "try", given.what])):
        settled = settle_try(place, question, arms, place.bank(), _baseline(arms), record, checks)
        looked_at = given.accept_implausible
        decision = decide(
            place, settled, lambda decision: looked_at_again(decision, arms, project.name, looked_at=looked_at)
        )
        return told(decision, page, as_json=given.json)


def _refused(lines: list[str]) -> int:
    """Say why nothing is run, and return the exit code."""
    words = "\n".join(map(visible, lines))
    command_line.error_in_json(words, Outcome.CANNOT_BE_JUDGED.exit_code)
    print(words, file=sys.stderr)
    return Outcome.CANNOT_BE_JUDGED.exit_code


def confirm(given: argparse.Namespace) -> int:
    """Run what was kept again with fresh seeds."""
    from plumbline.operate.experiments.carry_out_experiment import SettledExperiment, decide, entry_of, page_of, told
    from plumbline.operate.experiments.checks_before_keep import looked_at_again
    from plumbline.verdict.decision import bank as banks
    from plumbline.verdict.decision.fix_design import claim

    configuration = configuration_of(given)[0]
    place = _place(load(configuration))
    kept = place.named(given.name, kept=True)
    asked = kept.asked
    config = load_config() | {"preset": asked["preset"], "mine": asked["mine"], "experiment": {}}
    config |= {"studies": [asked["study"]], "main_study": asked["study"], "work": configuration["work"]}
    project = load(config)
    arms = arms_of(project, asked["experiment"], profile_words(given))
    if [arms.method(BASELINE), arms.method(arms.candidate)] != asked["methods"]:
        raise PlumblineError(
            f"{kept.terms.name}: its code is no longer what was kept; plumbline try {arms.candidate} tries what is "
            "there now, and git brings back what was kept"
        )
    name = f"{kept.terms.name.removesuffix('.confirmed')}.confirmed"
    question = replace(question_again(kept.terms, arms), name=name)
    with banks.hold(place.work, f"plumbline confirm {kept.terms.name}"):
        bank = place.bank()
        terms, plan = claim(question, arms, bank)
        entry = entry_of(question, arms, _baseline(arms), f"t of a claim at {terms.alpha:g}", asked)
        settled = SettledExperiment(terms=terms, plan=plan, trainer=arms, bank=bank, entry=entry, record=dict(asked))
        looked_at = given.accept_implausible or bool(kept.checks.get("implausible"))
        decision = decide(
            place, settled, lambda decision: looked_at_again(decision, arms, project.name, looked_at=looked_at)
        )
        return told(decision, page_of(place, name), as_json=given.json)


def _baseline(arms: StudyArms) -> str:
    """What the ledger calls what candidates are compared with, whatever the seed."""
    return arms.run_of(BASELINE).key.rpartition("/")[0]


def _checks(project: Project, arms: StudyArms) -> tuple[list[str], dict[str, Any]]:
    """What the checks of a user's own method refuse before anything is trained, and their report; a study's own
    methods, which extend none, are tested where they are kept."""
    from plumbline.operate.preflight import dry_run
    from plumbline.operate.preflight.method_checks import check_file, checks_report
    from plumbline.specs.checked_models import fingerprint_checks

    if project.mine is None:
        mine = of_experiment(arms.given, arms.study, project.root, project.config["data"]["source"])
        if mine is None:
            return [], {}
        path = Path(project.paths.work) / VERDICTS / mine.name / "checks.json"
        failing = check_file.checked(project, mine, path)
        return failing, checks_report.kept(path, fingerprint_checks(mine)) or {}

    run = arms.run_of(arms.candidate).spec
    wildcards = {"study": run.study, "scale": run.scale, "method": run.method, "seed": "0"}
    job = dry_run.JobToRun(rule="pretrain", wildcards=wildcards)
    failing = check_file.refused(dry_run.DryRun(project=project, jobs=(job,)))
    return failing, checks_report.kept(Path(project.paths.verdict_checks), project.fingerprints.checks()) or {}


def _plan(question: ExperimentQuestion, arms: StudyArms) -> str:
    from plumbline.plan import fit_to_time

    first, most = question.first_seed, question.most
    theirs = {
        "bank": range(first, first + question.bank),
        "interleaved": range(first, first + question.bank + most - 1),
        "paired": range(first + 2 * APART, first + 2 * APART + most),
    }[question.plan]
    ours = theirs if question.plan == "paired" else range(first + APART, first + APART + most)
    seeds = [(BASELINE, theirs), (arms.candidate, ours)]
    runs = [replace(arms.run_of(arm), spec=arms.spec_of(arm, seed)) for arm, each in seeds for seed in each]
    return (
        f"{question.candidate} against {question.baseline}: {arms.trainer}, {arms.budget}; {len(theirs)} runs of the "
        f"baseline, at most {most} of the candidate\n{fit_to_time.expected(arms.project, arms.study, runs)}"
    )


def place_of(given: argparse.Namespace) -> ExperimentFolders:
    """Find where the experiments of the preset lie that is meant."""
    config = configuration_of(given)[0]
    return _place(load(config | {"studies": [config["main_study"]], "mine": "", "experiment": {}}))


def _place(project: Project) -> ExperimentFolders:
    from plumbline.operate.experiments.experiment_folders import ExperimentFolders

    return ExperimentFolders(
        pages=Path(project.paths.results) / EXPERIMENTS,
        work=Path(project.paths.work) / EXPERIMENTS,
        ledger=Path(project.paths.verdict_ledger),
        where=f"at preset {project.name}",
        first="plumbline try METHOD",
        lacking="" if Path("Snakefile").exists() else "no plumbline.toml here or above; ",
    )


VERBS = {"try": try_, "confirm": confirm}


def run(given: argparse.Namespace) -> int:
    """Run a verb, and return its exit code."""
    if given.verb not in VERBS:
        from plumbline.operate.experiments.past_experiments import VIEWS

        return VIEWS[given.verb](given, place_of(given))
    return VERBS[given.verb](given)
