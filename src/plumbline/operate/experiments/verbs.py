"""Joins what the verbs of an experiment need: arms in the DAG, a method's checks, the loop, the ledger, the page."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline.core.files import canonical_json, sha256_text
from plumbline.experiment import ledger as ledgers
from plumbline.experiment.decision import announced, decision_page, records
from plumbline.experiment.decision import bank as banks
from plumbline.experiment.decision.bank import Bank
from plumbline.experiment.decision.decision_console import print_decision
from plumbline.experiment.decision.loop import Experiment, Schedule
from plumbline.experiment.decision.outcome import BASELINE, EXIT_CODES, Decision, ExperimentTerms
from plumbline.experiment.decision.settle import Question, claim, settle
from plumbline.experiment.formatting import counted
from plumbline.experiment.ledger import LedgerEntry
from plumbline.operate.experiments import views
from plumbline.operate.experiments.after_runs import looked_at_again
from plumbline.operate.experiments.asked import (
    arms_asked,
    arms_of,
    configuration_of,
    profile_words,
    question_again,
    question_of,
    record_of,
)
from plumbline.operate.experiments.place import Place
from plumbline.project import Project, load
from plumbline.project.arms import StudyArms
from plumbline.specs.yaml_files import load_config


def try_(given: argparse.Namespace) -> int:
    """Run a change against its baseline until it is decided."""
    config, words = configuration_of(given)
    project, asked = arms_asked(given, config)
    arms = arms_of(project, asked, [*words, *profile_words(given)])
    question = question_of(given, project, arms)
    place = Place(project=project)
    record = record_of(project, asked, question, arms)
    page = place.pages / f"{question.name}.md"
    if given.dry_run:
        failing, _ = _checks(project, arms)
        print("\n".join([*failing, _plan(question, arms)]), file=sys.stderr if failing else sys.stdout)
        return EXIT_CODES["cannot be judged"] if failing else 0
    if page.with_suffix(".json").exists():
        known = records.read(page.with_suffix(".json"))
        if known.asked == record and page.exists():
            print(f"decided already, {known.at}; for other seeds: --first-seed", file=sys.stderr)
            return _told(known, page, as_json=given.json)
    failing, checks = _checks(project, arms)
    if failing:
        print("\n".join(failing), file=sys.stderr)
        return EXIT_CODES["cannot be judged"]
    with banks.hold(place.work, shlex.join(["plumbline", "try", given.what])):
        bank = place.bank()
        terms, plan = settle(question, arms, bank)
        entry = _entry(terms, arms, announced.rule(question))
        announced.require_announced(entry, plan, arms, bank, ledgers.read(place.ledger))
        return _decide(place, arms, terms, plan, bank, entry, record, page, checks, as_json=given.json)


def confirm(given: argparse.Namespace) -> int:
    """Run what was kept again with fresh seeds."""
    place = Place(project=load(configuration_of(given)[0]))
    kept = place.named(given.name, kept=True)
    asked = kept.asked
    config = load_config() | {"preset": asked["preset"], "mine": asked["mine"], "experiment": {}}
    config |= {"studies": [asked["study"]], "main_study": asked["study"], "work": place.project.config["work"]}
    project = load(config)
    arms = arms_of(project, asked["experiment"], profile_words(given))
    name = f"{kept.terms.name.removesuffix('.confirmed')}.confirmed"
    question = replace(question_again(kept.terms, arms), name=name)
    page = place.pages / f"{name}.md"
    with banks.hold(place.work, f"plumbline confirm {kept.terms.name}"):
        bank = place.bank()
        terms, plan = claim(question, arms, bank)
        entry = _entry(terms, arms, f"t of a claim at {terms.alpha:g}")
        return _decide(place, arms, terms, plan, bank, entry, dict(asked), page, {}, as_json=given.json)


def _entry(terms: ExperimentTerms, arms: StudyArms, test: str) -> LedgerEntry:
    return LedgerEntry(
        kind="try",
        name=terms.name,
        fingerprint=sha256_text(canonical_json([arms.method(BASELINE), arms.method(terms.candidate)])),
        baseline=arms.run_of(BASELINE).key.rpartition("/")[0],
        metric=terms.metric,
        test=test,
    )


def _decide(
    place: Place,
    arms: StudyArms,
    terms: ExperimentTerms,
    plan: Schedule,
    bank: Bank,
    entry: LedgerEntry,
    record: dict[str, Any],
    page: Path,
    checks: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    """Enter the try, run it, and write what was decided with its page."""
    ledgers.append(place.ledger, [entry])
    _tell(f"{terms.candidate} against {terms.baseline}: {terms.trainer}, {terms.budget}. {_rule(terms)}")
    decision = Experiment(terms=terms, plan=plan, trainer=arms, bank=bank, tell=_tell).conduct()
    decision = looked_at_again(replace(decision, checks=checks), arms, place.project.name)
    decided = replace(entry, verdict=decision.verdict, sentence=decision.sentence, at=decision.at)
    with ledgers.entered(place.ledger, [decided]) as ledger:
        decision = replace(
            decision,
            asked=record,
            ledger=ledgers.statement(ledger, page.parent),
            tries=ledger.tries(entry.baseline, entry.metric),
        )
        decision_page.write(decision, page)
    return _told(decision, page, as_json=as_json)


def _told(decision: Decision, page: Path, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(decision_page.numbers(decision) | {"page": str(page)}))
        return decision.exit_code
    print_decision(decision)
    own = counted(sum(run.arm != BASELINE for run in decision.runs), "run")
    fixed = f"; a fixed number with the same power: {decision.fixed_runs}" if decision.fixed_runs else ""
    print(f"{own} of it, {decision.seconds:.0f} s of training{fixed}. {_rule(decision.terms)}\n{page}")
    return decision.exit_code


def _rule(terms: ExperimentTerms) -> str:
    design = terms.design
    if terms.claim:
        return f"Fresh seeds: {design.bank} of each, one t test at {design.alpha:g}, one-sided."
    order = {"bank": f"{design.bank} runs of the baseline, then", "paired": "pairs of runs:"}.get(
        design.plan, "in turn:"
    )
    return (
        f"Rule: {order} at most {design.most} of the candidate, a look after each, one-sided error {design.alpha:g} in "
        "all."
    )


def _checks(project: Project, arms: StudyArms) -> tuple[list[str], dict[str, Any]]:
    """What the checks of a user's own file refuse before anything is trained, and their report."""
    if project.mine is None:
        return [], {}
    from plumbline.experiment.checks import method_checks
    from plumbline.operate.preflight import dry_run, own_method

    run = arms.run_of(arms.candidate).spec
    wildcards = {"study": run.study, "scale": run.scale, "method": run.method, "seed": "0"}
    job = dry_run.JobToRun(rule="pretrain", wildcards=wildcards)
    failing = own_method.refused(dry_run.DryRun(project=project, jobs=(job,)))
    return failing, method_checks.kept(Path(project.paths.verdict_checks), project.fingerprints.checks()) or {}


def _plan(question: Question, arms: StudyArms) -> str:
    return (
        f"{question.candidate} against {question.baseline}: {arms.trainer}, {arms.budget}; {question.bank} runs of the "
        f"baseline, at most {question.most} of the candidate"
    )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _place(given: argparse.Namespace) -> Place:
    config = configuration_of(given)[0]
    return Place(project=load(config | {"studies": [config["main_study"]], "mine": "", "experiment": {}}))


def noise(given: argparse.Namespace) -> int:
    """Print what is known of the noise of a run."""
    return views.print_noise(given, _place(given).bank())


def log(given: argparse.Namespace) -> int:
    """Print every decision."""
    return views.print_log(given, ledgers.read(_place(given).ledger))


def page(given: argparse.Namespace) -> int:
    """Make a page again."""
    place = _place(given)
    decision = place.named(given.name)
    return views.print_page(given, decision, place.pages / f"{decision.terms.name}.md")


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "try": try_,
    "confirm": confirm,
    "noise": noise,
    "log": log,
    "page": page,
}
